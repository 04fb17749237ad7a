/** The Fetch editor on a rig: a scripted broker that holds empty Fetches as long as it was asked to, and one client. */
import assert from 'node:assert/strict'
import type { BrokerAddresses } from '../../../../src/editors/addresses.ts'
import { FetchEditor } from '../../../../src/editors/fetch/editor.ts'
import type { FetchPolicy, PartitionPolicy } from '../../../../src/editors/fetch/policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codec } from '../../../../src/protocol/codecs.ts'
import type { FetchRequest, FetchResponse } from '../../../../src/protocol/generated/01-fetch.ts'
import { Reader } from '../../../../src/protocol/reader.ts'
import { Writer } from '../../../../src/protocol/writer.ts'
import { requestFrame, responseFrame } from '../../../support/frames.ts'
import { type Peer, Rig } from '../../../support/rig.ts'

export const VERSION = 11
export const api = codec(apiKeys.Fetch)

export type Answering = (
  request: FetchRequest,
  at: number,
) => Parameters<typeof api.encodeResponse>[1] | 'silence' | 'garbage'

/** A broker that answers Fetch as told, waiting as long as it was asked to where there are no records, one by one. */
export class Broker {
  readonly fetches: FetchRequest[] = []
  readonly apis: { apiKey: number; atMs: number }[] = []
  private readonly rig: () => Rig
  private readonly answering: Answering
  private queue: Buffer[] = []
  private busy = false

  constructor(rig: () => Rig, answering: Answering) {
    this.rig = rig
    this.answering = answering
  }

  serve(peer: Peer): void {
    peer.onFrame = (frame) => {
      this.apis.push({ apiKey: frame.readInt16BE(4), atMs: this.rig().runtime.now() })
      this.queue.push(frame)
      this.next(peer)
    }
  }

  private next(peer: Peer): void {
    const frame = this.busy ? undefined : this.queue.shift()
    if (frame === undefined) return
    this.busy = true
    const reply = (body: Buffer): void => {
      this.busy = false
      peer.send(responseFrame(frame.readInt32BE(8), body))
      this.next(peer)
    }
    if (frame.readInt16BE(4) !== apiKeys.Fetch) return reply(Buffer.from('ok'))
    const bodyAt = 14 + Math.max(0, frame.readInt16BE(12))
    const request = api.decodeRequest(new Reader(frame, bodyAt, frame.length), VERSION)
    this.fetches.push(request)
    const answer = this.answering(request, this.fetches.length)
    if (answer === 'silence') return
    if (answer === 'garbage') return reply(Buffer.alloc(3))
    const found = answer.responses?.some(({ partitions = [] }) =>
      partitions.some(({ records, errorCode }) => (records?.length ?? 0) > 0 || (errorCode ?? 0) !== 0),
    )
    const writer = new Writer(256)
    api.encodeResponse(writer, answer, VERSION)
    const body = writer.finish()
    if (found === true) reply(body)
    else this.rig().runtime.timer(request.maxWaitMs, () => reply(body))
  }
}

export const addresses: BrokerAddresses = { advertised: () => ({ host: 'proxy', port: 1 }), learn: () => undefined }

export function start(policy: PartitionPolicy | undefined, answering: Answering) {
  return startUnder({ view: () => ({ partition: () => policy }) }, answering)
}

export async function startUnder(policy: FetchPolicy, answering: Answering) {
  const editor = new FetchEditor({ policies: [policy], addresses, maxInflatedBytes: 1 << 20 })
  const broker = new Broker(() => rig, answering)
  const rig = await Rig.start({ handlers: [editor], broker: (peer) => broker.serve(peer) })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client, broker }
}

export interface Asked {
  readonly offset?: number
  readonly maxWaitMs?: number
  readonly minBytes?: number
  readonly session?: readonly [id: number, epoch: number]
}

export function fetchFrame({ offset = 0, maxWaitMs = 5000, minBytes = 1, session = [0, 0] }: Asked = {}): Buffer {
  const writer = new Writer(256)
  const [sessionId, sessionEpoch] = session
  const topics = [{ topic: 't', partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1 << 20 }] }]
  api.encodeRequest(writer, { maxWaitMs, minBytes, maxBytes: 1 << 20, sessionId, sessionEpoch, topics }, VERSION)
  return requestFrame({ apiKey: apiKeys.Fetch, apiVersion: VERSION, correlationId: 9, body: writer.finish() })
}

export function read(frame: Buffer | undefined): FetchResponse {
  assert.ok(frame !== undefined, 'no answer')
  return api.decodeResponse(new Reader(frame, 8, frame.length), VERSION)
}

export function records(bytes?: Buffer, more: object = {}): Parameters<typeof api.encodeResponse>[1] {
  const partition = { partitionIndex: 0, highWatermark: 50, records: bytes ?? null, ...more }
  return { sessionId: 7, responses: [{ topic: 't', partitions: [partition] }] }
}
