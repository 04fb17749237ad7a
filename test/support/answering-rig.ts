/** A rig whose broker answers each request with the next of the given frames, under the request's correlation id. */
import type { Handler } from '../../src/pipeline/handler.ts'
import { apiKeys } from '../../src/protocol/api-table.ts'
import { codecRequest } from './codec-frames.ts'
import { type Peer, Rig, type RigOptions } from './rig.ts'

export interface Answered {
  readonly rig: Rig
  readonly client: Peer
}

/** @param frames answers; their correlation ids are filled in */
export async function answeringRig(
  handlers: readonly Handler[],
  frames: readonly Buffer[],
  options: RigOptions = {},
): Promise<Answered> {
  const answers = [...frames]
  const rig = await Rig.start({
    ...options,
    handlers,
    broker: (peer) => {
      peer.onFrame = (frame) => {
        const answer = Buffer.from(answers.shift() ?? Buffer.alloc(8))
        answer.writeInt32BE(frame.readInt32BE(8), 4)
        peer.send(answer)
      }
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client }
}

/** Sends one request of this API and returns the reply; undefined if the connection closed instead. */
export async function replyTo(
  handlers: readonly Handler[],
  apiKey: number,
  version: number,
  answer: Buffer,
  options: RigOptions = {},
): Promise<Answered & { reply: Buffer | undefined }> {
  const answered = await answeringRig(handlers, [answer], options)
  const { rig, client } = answered
  client.send(codecRequest(apiKey, version, 77, apiKey === apiKeys.Produce ? { acks: 1 } : {}))
  await rig.run(() => client.frames.length > 0 || client.closed, 120_000)
  return { ...answered, reply: client.frames[0] }
}
