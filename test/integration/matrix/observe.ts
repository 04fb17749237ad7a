/** Turns what a client saw into plain values that can be compared between routes. */
import assert from 'node:assert/strict'
import type { ClientEvent } from '../client.ts'

/** One delivered record: place, identity and content. */
export type Row = readonly [
  partition: number,
  offset: number,
  key: string | null,
  origin: string,
  value: string | null,
  headers: string,
  timestamp: number,
]

/** Delivered records in partition and offset order; fails when a partition was not delivered in offset order. */
export function rowsOf(events: readonly ClientEvent[]): Row[] {
  const last = new Map<number, number>()
  const rows = events.filter(isEvent('delivered')).map((event): Row => {
    const { partition = -1, offset = -1 } = event
    assert.ok(
      offset > (last.get(partition) ?? -1),
      `partition ${partition}: offset ${offset} after ${last.get(partition)}`,
    )
    last.set(partition, offset)
    return [
      partition,
      offset,
      event.key ?? null,
      originOf(event),
      event.valueHash ?? null,
      event.headersHash ?? '',
      event.timestamp ?? -1,
    ]
  })
  return rows.sort((a, b) => a[0] - b[0] || a[1] - b[1])
}

/** Fails unless exactly the acknowledged records were delivered, each where and as it was acknowledged. */
export function assertDelivered(acknowledged: readonly ClientEvent[], rows: readonly Row[]): void {
  const expected = new Map(acknowledged.map((event) => [originOf(event), event]))
  assert.equal(expected.size, acknowledged.length, 'an acknowledgement came twice')
  const seen = new Set<string>()
  for (const [partition, offset, key, origin, value, headers, timestamp] of rows) {
    const event = expected.get(origin)
    assert.ok(event !== undefined, `delivered but not acknowledged: ${origin}`)
    assert.ok(!seen.has(origin), `delivered twice: ${origin}`)
    seen.add(origin)
    assert.deepEqual([key, value, headers], [event.key ?? null, event.valueHash ?? null, event.headersHash], origin)
    if (typeof event.partition === 'number') assert.equal(partition, event.partition, origin)
    // No offset without an answer (acks=0), or where the client tells only the first of a batch.
    if (typeof event.offset === 'number' && event.offset >= 0) assert.equal(offset, event.offset, origin)
    if (typeof event.timestamp === 'number' && event.timestamp >= 0) assert.equal(timestamp, event.timestamp, origin)
  }
  assert.equal(rows.length, acknowledged.length, 'records are missing')
}

/** The partitions that a member holds after these events. */
export function held(events: readonly ClientEvent[]): Set<string> {
  const now = new Set<string>()
  for (const { event, partitions = [] } of events) {
    for (const [topic, partition] of partitions) {
      if (event === 'assigned') now.add(`${topic}-${partition}`)
      else now.delete(`${topic}-${partition}`)
    }
  }
  return now
}

export function isEvent(name: string): (event: ClientEvent) => boolean {
  return ({ event }) => event === name
}

/** The acknowledged records of a produce command; fails when one failed or the command did not end well. */
export function acknowledgedOf(events: readonly ClientEvent[]): ClientEvent[] {
  const bad = events.find(({ event }) => event === 'failed' || event === 'error')
  assert.equal(bad, undefined, `could not produce: ${JSON.stringify(bad)}`)
  return events.filter(isEvent('acknowledged'))
}

function originOf({ producer, sequence }: ClientEvent): string {
  return `${producer} ${sequence}`
}
