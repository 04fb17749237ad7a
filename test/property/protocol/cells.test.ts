/** Random values of every cell survive writing and reading; the oracle adds that Java agrees about the bytes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Reader } from '../../../src/protocol/reader.ts'
import { allCells } from '../../oracle/cells.ts'
import { encode } from '../../oracle/mutate.ts'
import { valuesOf } from '../../oracle/values.ts'

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test(`decoding what was encoded gives the same value and leaves nothing (SEED=${seed})`, () => {
  for (const cell of allCells()) {
    const property = fc.property(valuesOf(cell, 'tame'), (value) => {
      const bytes = encode(cell, value)
      // behind foreign bytes and before some: positions are absolute
      const inside = Buffer.concat([Buffer.alloc(3), bytes, Buffer.alloc(2)])
      const reader = new Reader(inside, 3, 3 + bytes.length)
      assert.deepEqual(cell.decode(reader), value)
      reader.expectEnd()
    })
    fc.assert(property, { seed, numRuns: 5 })
  }
})
