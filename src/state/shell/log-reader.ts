/**
 * Reads the state log. What was read counts only once a read is *confirmed*: all records below the high watermark that
 * its answer named have been applied. Half way to the end a view may miss what compaction took.
 *
 * A record that cannot be read (another program's, a newer version's) stops the confirming and not the reading: once a
 * tombstone for its key has followed, it was removed, or a snapshot that can be read replaces it.
 */
import { ClusterError } from '../../cluster/cluster-error.ts'
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import { type Fetched, inflatedBytesMax, positionAfter } from '../../cluster/fetch-records.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { type ReadRecord, readRecords } from '../../records/read.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Log } from '../../telemetry/log.ts'
import { StateError } from '../errors.ts'
import type { Moment } from '../lease.ts'
import { applyEntries, emptyLog, type LogEntry, type LogState } from '../log-reducer.ts'
import { decodeRecord } from '../records.ts'
import { Backoff } from './backoff.ts'
import { momentOf } from './moment.ts'
import { prepareStateTopic } from './state-topic.ts'

export interface LogReaderOptions {
  readonly runtime: Runtime
  readonly cluster: ClusterClient
  readonly log: Log
  readonly topic: string
  /** How long the broker holds a read at the log's end. */
  readonly maxWaitMs: number
  readonly timeoutMs: number
  /** A confirmed read, and when it was sent. */
  readonly onRead: (log: LogState, sent: Moment) => void
  /** The log is another one, or lost records: what was read before is void. */
  readonly onReset: () => void
  readonly onProblem: (problem: string | undefined) => void
}

/** How often it is checked that the topic was not made anew: brokers before 3.1 do not tell in Fetch. */
const checkMs = 10_000

export class LogReader {
  readonly #options: LogReaderOptions
  #log: LogState = emptyLog()
  #topicId: string | undefined
  #cursor = -1
  /** Key → why its record cannot be read. */
  readonly #refused = new Map<string, Error>()
  #isStopped = false
  readonly #backoff: Backoff
  #checkedAtMs = 0
  #isRemade = false

  constructor(options: LogReaderOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.runtime)
  }

  start(): void {
    void this.#run()
  }

  stop(): void {
    this.#isStopped = true
  }

  async #run(): Promise<void> {
    const { runtime, cluster, log, topic, onProblem } = this.#options
    while (!this.#isStopped) {
      try {
        const topicId = await prepareStateTopic(runtime, cluster, log, topic)
        if (topicId !== this.#topicId) this.#reset(topicId)
        if (this.#cursor < 0) this.#cursor = (await cluster.startOffsets(topic, [0]))[0] ?? 0
        await this.#readOn(topicId)
      } catch (error) {
        if (this.#isStopped) return
        if (error instanceof ClusterError && error.errorCode === errorCodes.OFFSET_OUT_OF_RANGE) this.#reset(undefined)
        onProblem((error as Error).message)
        await this.#backoff.wait(error)
      }
    }
  }

  #reset(topicId: string | undefined): void {
    const isFirst = this.#cursor < 0
    this.#topicId = topicId
    this.#log = emptyLog()
    this.#cursor = -1
    this.#isRemade = false
    this.#refused.clear()
    if (!isFirst) this.#options.onReset()
  }

  async #readOn(topicId: string): Promise<void> {
    const { runtime, cluster, topic, maxWaitMs, timeoutMs, onRead, onProblem } = this.#options
    const options = { isolation: 'uncommitted', maxWaitMs, timeoutMs, lane: 'state-read', attempts: 2 } as const
    while (!this.#isStopped) {
      const sent = momentOf(runtime)
      void this.#check(topicId, sent.monotonicMs)
      const fetched = await cluster.fetch(topic, 0, this.#cursor, options)
      if (this.#isStopped) return
      if (fetched.topicId !== topicId || this.#isRemade) {
        throw new StateError('HG_STATE_TOPIC', `the topic ${topic} was deleted and made again: its state starts afresh`)
      }
      this.#consume(fetched)
      if (this.#cursor < fetched.highWatermark) continue
      this.#backoff.reset()
      const refused = this.#problem()
      onProblem(refused)
      if (refused === undefined) onRead(this.#log, sent)
    }
  }

  #consume({ records }: Fetched): void {
    const entries: LogEntry[] = []
    for (const record of readRecords(records, inflatedBytesMax)) {
      const entry = record.offset >= this.#cursor && !record.control ? this.#entryOf(record) : undefined
      if (entry !== undefined) entries.push(entry)
    }
    this.#log = applyEntries(this.#log, entries, ({ offset, key }, error) => {
      const isReplaced = entries.some((later) => later.key === key && later.offset > offset)
      if (!isReplaced) this.#refused.set(key, error as Error)
    })
    this.#cursor = positionAfter(records, this.#cursor)
  }

  #entryOf({ offset, timestamp: atMs, key: keyBytes, value }: ReadRecord): LogEntry | undefined {
    const key = keyBytes?.toString('utf8') ?? ''
    try {
      const entry = { offset, atMs, key, ...(value === null ? {} : { record: decodeRecord(value) }) }
      this.#refused.delete(key)
      return entry
    } catch (error) {
      this.#refused.set(key, error as Error)
      return undefined
    }
  }

  #problem(): string | undefined {
    const [first] = this.#refused
    if (first === undefined) return undefined
    const [key, error] = first
    const more = this.#refused.size === 1 ? '' : ` (and ${this.#refused.size - 1} more)`
    const isNewer = error instanceof StateError && error.code === 'HG_STATE_VERSION'
    const fix = isNewer
      ? 'update this proxy'
      : `find out who writes to ${this.#options.topic}, and remove the record by one with the same key and no value`
    return `${error.message} (key ${JSON.stringify(key)})${more}: ${fix}`
  }

  async #check(topicId: string, nowMs: number): Promise<void> {
    if (nowMs - this.#checkedAtMs < checkMs) return
    this.#checkedAtMs = nowMs
    try {
      const [topic] = await this.#options.cluster.describeTopics([this.#options.topic])
      this.#isRemade ||= topic !== undefined && topic.topicId !== topicId && topicId === this.#topicId
    } catch {
      // the next read, or the next check, finds out what is wrong
    }
  }
}
