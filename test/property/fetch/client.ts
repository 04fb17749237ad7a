/** A consumer of one partition as real families are: where it goes on after an answer, and what its application sees. */
import assert from 'node:assert/strict'
import { lastOffsetOf, walkEntries } from '../../../src/records/batch.ts'
import { readRecords } from '../../../src/records/read.ts'
import type { FetchResponsePartition } from '../../../src/protocol/generated/01-fetch.ts'

/** `batch`: the end of the last batch (Java, librdkafka …); `record`: the last record + 1 (kafkajs, sarama). */
export type PositionRule = 'batch' | 'record'

export class Consumer {
  position: number
  /** Offsets delivered since the last seek. */
  readonly delivered: number[] = []
  private readonly rule: PositionRule

  constructor(position: number, rule: PositionRule) {
    this.position = position
    this.rule = rule
  }

  seek(offset: number): void {
    this.position = offset
    this.delivered.length = 0
  }

  take({ errorCode, records, abortedTransactions }: FetchResponsePartition): void {
    assert.equal(errorCode, 0)
    assert.ok(records !== null, 'null records: kafka-python fails')
    assert.deepEqual(abortedTransactions ?? [], [], 'aborted records must have been taken out')
    if (records.length === 0) return
    let end = -1
    walkEntries(records, (at, next) => {
      const entry = records.subarray(at, next)
      assert.ok(readRecords(entry, 1 << 20).length > 0, 'a batch without records: wedges kafkajs, loops kafka-go')
      end = lastOffsetOf(records, at) + 1
    })
    const news = readRecords(records, 1 << 20).filter(({ control, offset }) => !control && offset >= this.position)
    assert.ok(news.length > 0, 'records that all lie below the fetch offset: kafkajs loses one')
    for (const { offset } of news) this.delivered.push(offset)
    this.position = this.rule === 'batch' ? end : (this.delivered.at(-1) ?? 0) + 1
  }
}
