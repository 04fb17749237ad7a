import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Learning } from '../../../../../src/features/layouts/shell/learning.ts'
import { codecs } from '../../../../../src/records/batch.ts'
import { buildBatch } from '../../../../../src/records/build.ts'
import { type PartitionerName, partitioners } from '../../../../../src/records/hashes/partitioners.ts'
import { keysIn } from '../../../../support/layouts-rig.ts'

function batch(keys: readonly (string | null)[], more: object = {}): Buffer {
  return buildBatch({
    records: keys.map((key) => ({ key: key === null ? null : Buffer.from(key), value: Buffer.from('v') })),
    ...more,
  })
}

for (const name of Object.keys(partitioners) as PartitionerName[]) {
  test(`learning: ${name} is recognised from the records, compressed or not, and only then trusted`, () => {
    const learning = new Learning('auto')
    assert.equal(learning.wants('i'), true)
    for (let partition = 0; partition < 7; partition++) {
      const keys = keysIn([[7, partition]], 12, name)
      const codec = partition % 2 === 0 ? codecs.none : codecs.gzip
      learning.read('i', '', partition, batch(keys, { codec }), [7])
    }
    assert.equal(learning.wants('i'), false)
    const [key = ''] = keysIn([[7, 3]], 1, name)
    const { hashes } = learning.read('i', '', 3, batch([key]), [7])
    assert.deepEqual(
      hashes?.map((hash) => hash % 7),
      [3],
    )
  })
}

test('learning: null keys teach nothing, and looking for keys ends', () => {
  const learning = new Learning('auto')
  for (let i = 0; i < 63; i++) learning.read('i', '', 0, batch([null]), [3])
  assert.equal(learning.wants('i'), true)
  learning.read('i', '', 0, batch([null]), [3])
  assert.equal(learning.wants('i'), false)
})

test('learning: an instance that chooses partitions itself has no hashes', () => {
  const learning = new Learning('auto')
  for (let i = 0; i < 3; i++) learning.read('i', '', i, batch(keysIn([[3, 0]], 30)), [3])
  assert.equal(learning.read('i', '', 0, batch(['a']), [3]).hashes, undefined)
})

test('learning: a configured partitioner is believed at once, none never', () => {
  const [key = ''] = keysIn([[5, 2]], 1, 'crc32')
  assert.deepEqual(
    new Learning('crc32').read('i', '', 2, batch([key]), [5]).hashes?.map((hash) => hash % 5),
    [2],
  )
  assert.equal(new Learning('none').read('i', '', 2, batch([key]), [5]).hashes, undefined)
  assert.equal(new Learning('none').wants('i'), false)
})

test('learning: a batch is recognised by its sequence, or by its first record however it is cut', () => {
  const learning = new Learning('auto')
  const mark = (records: Buffer) => learning.read('i', '', 1, records, [3]).mark
  assert.equal(mark(batch(['a', 'b'])), mark(batch(['a'])))
  assert.notEqual(mark(batch(['a'])), mark(batch(['b'])))
  const sequenced = { producerId: 7, producerEpoch: 1, baseSequence: 4 }
  assert.equal(mark(batch(['a'], sequenced)), '7/1/1/4')
  assert.deepEqual(learning.read('i', '', 1, batch(['a'], sequenced), [3]).sequenced, {
    producerId: '7',
    producerEpoch: 1,
    sequence: 4,
  })
})

test('learning: what cannot be read is judged by the count last served', () => {
  const broken = batch(['a'])
  broken[61] = 0x7f
  assert.equal(new Learning('murmur2-mask').read('i', '', 0, broken, [3]).hashes, undefined)
  assert.equal(new Learning('murmur2-mask').read('i', '', 0, broken.subarray(0, 40), [3]).hashes, undefined)
})

test('learning: of a producer with one request at a time each record is recognised, whenever it is stamped', () => {
  const learning = new Learning('auto')
  const read = (records: Buffer) => learning.read('i', '', 1, records, [3], true)
  const stamped = (timestamp: number, ...keys: string[]) =>
    buildBatch({ records: keys.map((key) => ({ key: Buffer.from(key), value: Buffer.from('v'), timestamp })) })
  const { mark } = read(stamped(1, 'b', 'c'))
  const back = read(stamped(2, 'a', 'b'))
  assert.notEqual(back.mark, mark)
  assert.equal(back.others?.has(mark), true)
  assert.equal(read(batch(['a', 'b'], { producerId: 7, producerEpoch: 1, baseSequence: 4 })).others, undefined)
  assert.equal(learning.read('i', '', 1, batch(['a', 'b']), [3]).others, undefined)
})
