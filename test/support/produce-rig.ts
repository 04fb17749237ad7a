/** A rig for Produce: a broker that keeps logs, and a policy whose verdicts a test gives. */
import { ProduceEditor } from '../../src/editors/produce/editor.ts'
import type { ProduceLane } from '../../src/editors/produce/lane.ts'
import type {
  AdmittedBatch,
  BatchOutcome,
  BatchVerdict,
  ProduceBatch,
  ProducePolicy,
} from '../../src/editors/produce/policy.ts'
import { apiKeys } from '../../src/protocol/api-table.ts'
import { codec } from '../../src/protocol/codecs.ts'
import type { ProduceResponse } from '../../src/protocol/generated/00-produce.ts'
import { peekBodyStart } from '../../src/protocol/peek.ts'
import { Reader } from '../../src/protocol/reader.ts'
import { buildBatch } from '../../src/records/build.ts'
import { readRecords } from '../../src/records/read.ts'
import { codecRequest, codecResponse, openResponse } from './codec-frames.ts'
import { FakeAddresses } from './fake-addresses.ts'
import { type Peer, Rig, type RigOptions } from './rig.ts'

/** A batch that a policy was asked about. */
export interface Asked {
  readonly batch: ProduceBatch
  /** The values of its records, joined. */
  readonly text: string
  decide(verdict: BatchVerdict): void
  outcome: BatchOutcome | 'lost' | undefined
  told: number
  isBound: boolean
}

/** Asks for everything whose topic begins with `g`; what `verdict` leaves open waits for the test. */
export class ScriptedPolicy implements ProducePolicy {
  readonly asked: Asked[] = []
  opened = 0
  closedLanes = 0
  throttledMs = 0
  verdict: (batch: ProduceBatch, text: string) => BatchVerdict | undefined = () => ({ kind: 'forward' })
  opens: ProducePolicy['opens'] = () => true

  admit(
    batches: readonly ProduceBatch[],
    decide: (index: number, verdict: BatchVerdict) => void,
  ): readonly (AdmittedBatch | undefined)[] {
    this.opened++
    return batches.map((batch, index) => {
      if (!batch.topic.startsWith('g')) return undefined
      const text = valuesOf(batch.records)
      const asked: Asked = {
        batch,
        text,
        outcome: undefined,
        told: 0,
        isBound: false,
        decide: (verdict) => decide(index, verdict),
      }
      this.asked.push(asked)
      const verdict = this.verdict(batch, text)
      if (verdict !== undefined) decide(index, verdict)
      return {
        topic: batch.topic,
        ended: (outcome) => {
          asked.outcome = outcome
          asked.told++
        },
        lost: () => {
          asked.outcome = 'lost'
          asked.told++
        },
        bound: () => (asked.isBound = true),
      }
    })
  }

  identified(): void {
    // tests of the feature look at that
  }

  failedUnopened(): void {
    // tests of the feature look at that
  }

  throttled(_lane: ProduceLane, ms: number): void {
    this.throttledMs = ms
  }

  closed(): void {
    this.closedLanes++
  }
}

export const forward: BatchVerdict = { kind: 'forward' }
export const refuse: BatchVerdict = { kind: 'refuse', errorCode: 6 }

/** Logs by `topic/partition`, as texts of record values. */
export class LogBroker {
  readonly logs = new Map<string, string[]>()
  /** Api keys and texts, in the order in which they came. */
  readonly seen: string[] = []
  /** Answers are kept back while it is true. */
  silent = false
  private kept: (() => void)[] = []
  throttleMs = 0
  error: (topic: string, partition: number, text: string) => number = () => 0

  readonly serve = (peer: Peer): void => {
    peer.onFrame = (frame) => {
      const answer = this.answer(frame)
      if (answer === undefined) return
      if (this.silent) this.kept.push(() => peer.send(answer))
      else peer.send(answer)
    }
  }

  speak(): void {
    this.silent = false
    for (const send of this.kept.splice(0)) send()
  }

  private answer(frame: Buffer): Buffer | undefined {
    const [apiKey, version, id] = [frame.readInt16BE(4), frame.readInt16BE(6), frame.readInt32BE(8)]
    const reader = new Reader(frame, peekBodyStart(frame, 4, frame.length))
    if (apiKey === apiKeys.Produce) return this.produce(reader, version, id)
    if (apiKey === apiKeys.ListOffsets) return this.listOffsets(reader, version, id)
    this.seen.push(`api ${apiKey}`)
    return codecResponse(apiKey, version, id, {})
  }

  private produce(reader: Reader, version: number, id: number): Buffer | undefined {
    const request = codec(apiKeys.Produce).decodeRequest(reader, version)
    const responses = request.topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index, records }) => {
        const text = valuesOf(records ?? Buffer.alloc(0))
        this.seen.push(`${name}/${index} ${text}`)
        const errorCode = this.error(name, index, text)
        const log = this.logs.get(`${name}/${index}`) ?? []
        this.logs.set(`${name}/${index}`, log)
        const baseOffset = errorCode === 0 ? log.length : -1
        if (errorCode === 0) log.push(...text)
        return { index, errorCode, baseOffset }
      }),
    }))
    if (request.acks === 0) return undefined
    return codecResponse(apiKeys.Produce, version, id, { responses, throttleTimeMs: this.throttleMs })
  }

  private listOffsets(reader: Reader, version: number, id: number): Buffer {
    const request = codec(apiKeys.ListOffsets).decodeRequest(reader, version)
    this.seen.push('ends')
    const topics = request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: 0,
        timestamp: -1,
        offset: this.logs.get(`${name}/${partitionIndex}`)?.length ?? 0,
      })),
    }))
    return codecResponse(apiKeys.ListOffsets, version, id, { topics })
  }
}

/** The values of all records, joined: with values of one letter, a text. */
export function valuesOf(records: Buffer): string {
  return readRecords(records, 1 << 20)
    .map(({ value }) => value?.toString() ?? '-')
    .join('')
}

/** Records with these values, one a letter. */
export function records(values: string, producerId = -1): Buffer {
  const each = [...values].map((value) => ({ key: Buffer.from(value), value: Buffer.from(value) }))
  return buildBatch({ records: each, producerId })
}

export interface ProduceDraft {
  readonly version?: number
  readonly acks?: number
  readonly transactionalId?: string | null
  /** Of an idempotent producer. */
  readonly producerId?: number
  /** `topic/partition` → values of its records. */
  readonly data: Readonly<Record<string, string>>
}

/** A Produce frame in the grouping of `data`; the same topic twice in a row is one entry. */
export function produce(id: number, draft: ProduceDraft): Buffer {
  const { version = 9, acks = 1, transactionalId = null, producerId = -1, data } = draft
  const topicData: { name: string; partitionData: { index: number; records: Buffer }[] }[] = []
  for (const [place, values] of Object.entries(data)) {
    const [name = '', index = '0'] = place.split('/')
    const partition = { index: Number(index), records: records(values, producerId) }
    const last = topicData.at(-1)
    if (last?.name === name) last.partitionData.push(partition)
    else topicData.push({ name, partitionData: [partition] })
  }
  return codecRequest(apiKeys.Produce, version, id, { transactionalId, acks, timeoutMs: 1000, topicData })
}

/** `topic/partition error@base` of an answer, in its order. */
export function resultsOf(frame: Buffer | undefined, version = 9): string[] {
  if (frame === undefined) return []
  const { responses } = openResponse(apiKeys.Produce, version, frame) as ProduceResponse
  return responses.flatMap(({ name, partitionResponses }) =>
    partitionResponses.map(({ index, errorCode, baseOffset }) => `${name}/${index} ${errorCode}@${baseOffset}`),
  )
}

export interface ProduceRig {
  readonly rig: Rig
  readonly client: Peer
  readonly policy: ScriptedPolicy
  readonly broker: LogBroker
}

export async function produceRig(options: RigOptions = {}): Promise<ProduceRig> {
  const policy = new ScriptedPolicy()
  const broker = new LogBroker()
  const editor = new ProduceEditor(policy, new FakeAddresses())
  const rig = await Rig.start({ ...options, handlers: [editor], broker: broker.serve })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client, policy, broker }
}
