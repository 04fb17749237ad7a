/**
 * Appends to the state log with acks=all, in order: what comes while a batch is under way goes with the next one. A
 * batch that failed is dropped, since whoever wanted a record sees that it is missing and asks again.
 */
import { ClusterError } from '../../cluster/cluster-error.ts'
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { codecs } from '../../records/batch.ts'
import { buildBatch } from '../../records/build.ts'
import type { Runtime } from '../../runtime/runtime.ts'

export interface AppenderOptions {
  readonly runtime: Runtime
  readonly cluster: ClusterClient
  readonly topic: string
  readonly timeoutMs: number
  readonly onProblem: (problem: string | undefined) => void
}

interface Waiting {
  readonly key: Buffer
  /** null: a tombstone. */
  readonly value: Uint8Array | null
  readonly timestamp: number
}

const batchBytesMax = 512 * 1024
const batchBytesMin = 16 * 1024
/** From here on a batch is compressed: votes and snapshots name every client, a broker takes 1 MiB (max.message.bytes). */
const compressFromBytes = 16 * 1024
const queueMax = 20_000

export class Appender {
  readonly #options: AppenderOptions
  #waiting: Waiting[] = []
  #flushing: Promise<void> | undefined
  #batchBytes = batchBytesMax
  /** Records that the broker has acknowledged, and records that were dropped. */
  appendedTotal = 0
  droppedTotal = 0

  constructor(options: AppenderOptions) {
    this.#options = options
  }

  append(key: string, value: Uint8Array | null): void {
    if (this.#waiting.length >= queueMax) {
      this.droppedTotal++
      return
    }
    this.#waiting.push({ key: Buffer.from(key), value, timestamp: this.#options.runtime.wallNow() })
    this.#flushing ??= this.#flush()
  }

  /** Forgets what is not under way yet. */
  clear(): void {
    this.droppedTotal += this.#waiting.length
    this.#waiting = []
  }

  /** Resolves when all that was appended is acknowledged or dropped. */
  async flushed(): Promise<void> {
    await this.#flushing
  }

  async #flush(): Promise<void> {
    const { cluster, topic, timeoutMs, onProblem } = this.#options
    await Promise.resolve() // records appended in the same turn go together
    while (this.#waiting.length > 0) {
      const batch = this.#take()
      try {
        const codec = sizeOf(batch) < compressFromBytes ? codecs.none : codecs.gzip
        const records = buildBatch({ records: batch, baseTimestamp: batch[0]?.timestamp ?? 0, codec })
        await cluster.produce(topic, 0, records, { lane: 'state-append', timeoutMs })
        this.appendedTotal += batch.length
        onProblem(undefined)
      } catch (error) {
        if (this.#isTooLarge(error, batch)) this.#waiting.unshift(...batch)
        else this.droppedTotal += batch.length
        onProblem((error as Error).message)
      }
    }
    this.#flushing = undefined
  }

  /** A batch that was refused for its size is divided; a single record can only be dropped. */
  #isTooLarge(error: unknown, batch: readonly Waiting[]): boolean {
    if (!(error instanceof ClusterError) || error.errorCode !== errorCodes.MESSAGE_TOO_LARGE) return false
    if (batch.length === 1 || this.#batchBytes <= batchBytesMin) return false
    this.#batchBytes = Math.max(batchBytesMin, this.#batchBytes / 2)
    return true
  }

  #take(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const item of this.#waiting) {
      bytes += sizeOf([item])
      if (count > 0 && bytes > this.#batchBytes) break
      count++
    }
    return this.#waiting.splice(0, count)
  }
}

/** About; not compressed. */
function sizeOf(records: readonly Waiting[]): number {
  return records.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0) + 32, 0)
}
