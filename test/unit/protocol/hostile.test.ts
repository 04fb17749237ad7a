/**
 * Hostile bytes for every cell: each message cut at every byte, hostile lengths laid over it, and a short run of random
 * mutations. `npm run fuzz` lays every hostile length over every position and mutates a million times.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { allCells } from '../../oracle/cells.ts'
import { Dice, encode, endure, hostile, mutate } from '../../oracle/mutate.ts'
import { valuesOf } from '../../oracle/values.ts'

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const corpus = allCells().map((cell) => {
  const samples = fc.sample(valuesOf(cell, 'tame'), { seed, numRuns: 6 }).map((value) => encode(cell, value))
  const bytes = samples.sort((a, b) => b.length - a.length).find((one) => one.length < 400) ?? Buffer.alloc(0)
  return { cell, bytes }
})

test(`a message cut at any byte is refused, and the error says where (SEED=${seed})`, () => {
  for (const { cell, bytes } of corpus) {
    for (let end = 0; end < bytes.length; end++) {
      assert.throws(
        () => cell.decode(new Reader(bytes, 0, end)),
        (error) => error instanceof ProtocolError && error.field !== '' && error.offset <= end,
        `${cell.name} cut at ${end} of ${bytes.toString('hex')}`,
      )
    }
  }
})

test(`a hostile length anywhere is a value or a typed error (SEED=${seed})`, () => {
  const dice = new Dice(seed)
  for (const { cell, bytes } of corpus) {
    for (let at = dice.roll(3); at < bytes.length; at += 2 + dice.roll(4)) {
      const copy = Buffer.from(bytes)
      dice.pick(hostile).copy(copy, at)
      check(cell.name, copy, () => endure(cell, copy))
    }
  }
})

test(`mutated messages are values or typed errors (SEED=${seed})`, () => {
  const dice = new Dice(seed)
  for (let run = 0; run < 20_000; run++) {
    const { cell, bytes } = dice.pick(corpus)
    const mutated = mutate(bytes, dice.pick(corpus).bytes, dice)
    check(cell.name, mutated, () => endure(cell, mutated))
  }
})

function check(name: string, bytes: Buffer, run: () => unknown): void {
  try {
    run()
  } catch (error) {
    assert.fail(`${name} with ${bytes.toString('hex')}: ${String(error)}`)
  }
}
