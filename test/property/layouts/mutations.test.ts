/**
 * Every rule that matters, broken on purpose, is found by the model within 500 seeds. The seed that found it last is
 * tried first; if the model has changed so that it no longer does, the search starts over and prints the new one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mutation, mutations, themeOf } from '../../model/mutations.ts'
import { runSeed } from '../../model/run.ts'

const foundBy: Record<Mutation, number> = {
  'gate-on-position': 4,
  'no-seal': 11,
  'owed-forgotten': 45,
  'leaving-is-clean': 288,
  'stopping-is-clean': 26,
  unchained: 23,
  'boundary-early': 4,
  'cut-without-waiting': 145,
  'cut-in-force-early': 116,
  'lease-not-checked-again': 29,
  'lease-without-heartbeat': 11,
  'one-key': 1,
  'no-cuts': 10,
  'cuts-forgotten-early': 64,
}

function search(mutation: Mutation): { seed: number; text: string } | undefined {
  const seeds = [foundBy[mutation], ...Array.from({ length: 500 }, (_, index) => index + 1)]
  for (const seed of seeds) {
    const [first] = runSeed({ seed, mutation, theme: themeOf[mutation] }).failures
    if (first !== undefined) return { seed, text: `${first.rule}: ${first.text.slice(0, 200)}` }
  }
  return undefined
}

for (const [mutation, rule] of Object.entries(mutations) as [Mutation, string][]) {
  void test(`found: ${rule}`, (context) => {
    const found = search(mutation)
    assert.ok(found, `no seed up to 500 finds it`)
    assert.deepEqual(
      runSeed({ seed: found.seed, theme: themeOf[mutation] }).failures,
      [],
      'the same seed fails without the mutation',
    )
    context.diagnostic(`seed ${found.seed}: ${found.text}`)
  })
}
