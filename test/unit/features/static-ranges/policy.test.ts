import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StaticRanges } from '../../../../src/features/static-ranges/feature.ts'
import { RangeOwner } from '../../../../src/features/static-ranges/policy.ts'
import type { Connection } from '../../../../src/pipeline/connection.ts'
import { bucketOfOffset } from '../../../../src/records/hashes/buckets.ts'

const rule = { group: /^(?:orders)$/, clientId: 'left', ranges: [{ first: 0, last: 0x7fff }] }

function connection(clientId: string | null, ...groups: string[]): Connection {
  const memberships = new Map(groups.map((group) => [group, {}]))
  return { clientId, instance: { memberships } } as unknown as Connection
}

test('a range has its first and its last bucket', () => {
  const { has } = new RangeOwner({
    ...rule,
    ranges: [
      { first: 1, last: 2 },
      { first: 0xffff, last: 0xffff },
    ],
  })
  assert.deepEqual(
    [0, 1, 2, 3, 0xfffe, 0xffff].map((bucket) => has[bucket]),
    [0, 1, 1, 0, 0, 1],
  )
})

test('a consumer is known by its client id, and by its group if it shows one', () => {
  const ranges = new StaticRanges([rule])
  assert.ok(ranges.view(connection('left')) !== undefined, 'assign() shows no group')
  assert.ok(ranges.view(connection('left', 'orders')) !== undefined)
  assert.ok(ranges.view(connection('left', 'else', 'orders')) !== undefined)
  assert.equal(ranges.view(connection('left', 'orders-2')), undefined, 'the whole group id must match')
  assert.equal(ranges.view(connection('right', 'orders')), undefined)
  assert.equal(ranges.view(connection(null)), undefined)
})

test('null keys go by offset, and what is delivered and withheld is counted', () => {
  const ranges = new StaticRanges([rule])
  const policy = ranges.view(connection('left'))?.partition('t', '', 0, 0)
  const kept = [0, 1, 2, 3].map((offset) =>
    policy?.keep?.({ bytes: Buffer.alloc(0), offset, keyStart: -1, keyEnd: -1, valueStart: -1, valueEnd: -1 }),
  )
  assert.deepEqual(
    kept,
    [0, 1, 2, 3].map((offset) => bucketOfOffset(offset) <= 0x7fff),
  )
  policy?.count?.(3, 1)
  policy?.count?.(0, 2)
  assert.deepEqual(ranges.views(), [
    { group: '^(?:orders)$', clientId: 'left', keys: ['0000-7fff'], delivered: 3, withheld: 3 },
  ])
})
