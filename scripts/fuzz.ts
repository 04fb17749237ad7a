/**
 * Feeds mutated messages of every cell to the decoders: `npm run fuzz [-- --runs 1000000] [--seed N] [--only TEXT]`.
 * A run fails on anything but a value or a typed error. The seed is printed; the same seed gives the same run.
 */
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import type { Cell } from '../test/oracle/cells.ts'
import { allCells } from '../test/oracle/cells.ts'
import { Dice, encode, endure, hostile, mutate } from '../test/oracle/mutate.ts'
import { valuesOf } from '../test/oracle/values.ts'

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    only: { type: 'string', default: '' },
  },
})
const runs = Number(options.runs)
const seed = Number(options.seed)

const cells = allCells().filter((cell) => cell.name.includes(options.only))
console.log(`seed ${seed}, ${runs} mutations over ${cells.length} cells (repeat with: npm run fuzz -- --seed ${seed})`)
const corpus = cells.map((cell) => ({ cell, bases: bases(cell) }))
const everything = corpus.flatMap((entry) => entry.bases)
const outcomes = new Map<string, number>()
let failures = 0
const dice = new Dice(seed)
overlay()
for (let run = 0; run < runs && failures < 10; run++) {
  const { cell, bases } = corpus[run % corpus.length] ?? dice.pick(corpus)
  const bytes = mutate(dice.pick(bases), dice.pick(everything), dice)
  const outcome = outcomeOf(cell, bytes)
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}
for (const [outcome, count] of [...outcomes].sort((a, b) => b[1] - a[1])) console.log(`${count} ${outcome}`)
console.log(`${runs - failures} passed, ${failures} failed`)
process.exitCode = failures === 0 ? 0 : 1

/** Every hostile length over every position of one message per cell. */
function overlay(): void {
  let count = 0
  for (const { cell, bases } of corpus) {
    const bytes = bases.filter((one) => one.length < 400).sort((a, b) => b.length - a.length)[0] ?? Buffer.alloc(0)
    for (let at = 0; at < bytes.length; at++) {
      for (const piece of hostile) {
        const copy = Buffer.from(bytes)
        piece.copy(copy, at)
        outcomeOf(cell, copy)
        count++
      }
    }
  }
  console.log(`${count} hostile lengths laid over ${corpus.length} messages, ${failures} failed`)
}

/** Small messages of a cell to start from: half of them with values at the limits of their types. */
function bases(cell: Cell): Buffer[] {
  const samples = [
    ...fc.sample(valuesOf(cell, 'tame'), { seed, numRuns: 4 }),
    ...fc.sample(valuesOf(cell, 'wild'), { seed, numRuns: 4 }),
  ]
  return samples.map((value) => encode(cell, value)).filter((bytes) => bytes.length < 4096)
}

function outcomeOf(cell: Cell, bytes: Buffer): string {
  try {
    const outcome = endure(cell, bytes)
    return outcome === 'value' ? outcome : outcome.code
  } catch (error) {
    failures++
    console.log(`not ok ${cell.name}: ${String(error)}\n  ${bytes.toString('hex')}`)
    return 'failure'
  }
}
