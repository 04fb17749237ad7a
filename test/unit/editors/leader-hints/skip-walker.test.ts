import assert from 'node:assert/strict'
import test from 'node:test'
import { skipProgram } from '../../../../src/editors/leader-hints/programs.ts'
import { SkipWalker } from '../../../../src/editors/leader-hints/skip-program.ts'
import { apiByKey, apiKeys, isFlexible } from '../../../../src/protocol/api-table.ts'
import { fetchAnswer, produceAnswer } from '../../../support/answers.ts'
import { responseBody } from '../../../support/codec-frames.ts'
import { Prng } from '../../../support/prng.ts'

const shape = { nodes: [0, 1, 2, 300], recordBytes: 400, endpoints: false }

function walkerOf(apiKey: number, version: number): SkipWalker {
  const program = skipProgram(apiKey, version)
  assert.ok(program !== undefined)
  return new SkipWalker(program)
}

/** Error codes of an answer in the order in which they stand in it. */
function errorsOf(draft: ReturnType<typeof fetchAnswer> | ReturnType<typeof produceAnswer>): number[] {
  const top = 'sessionId' in draft ? [draft.errorCode ?? 0] : []
  const codes = (draft.responses ?? []).flatMap((topic) => {
    const partitions =
      'partitions' in topic ? topic.partitions : 'partitionResponses' in topic ? topic.partitionResponses : []
    return (partitions ?? []).map((partition) => partition.errorCode ?? 0)
  })
  return [...top, ...codes].filter((code) => code !== 0)
}

for (const [apiKey, answer] of [
  [apiKeys.Fetch, fetchAnswer],
  [apiKeys.Produce, produceAnswer],
] as const) {
  const { name, minVersion, maxVersion } = apiByKey(apiKey) ?? { name: '', minVersion: 0, maxVersion: -1 }
  for (let version = minVersion; version <= maxVersion; version++)
    test(`${name} v${version}: the end is found and errors are counted, whole and cut at every byte`, () => {
      const flexible = isFlexible(apiKey, version)
      for (let seed = 1; seed <= 40; seed++) {
        const draft = answer(new Prng(seed), version, { ...shape, tags: flexible })
        const { unknownTags: _, ...withoutTail } = draft
        const body = responseBody(apiKey, version, draft)
        const tailAt = responseBody(apiKey, version, withoutTail).length - (flexible ? 1 : 0)
        const expected = errorsOf(draft)
        const whole = walkerOf(apiKey, version)
        assert.equal(whole.walk(body, 0, body.length), tailAt, `seed ${seed}`)
        assert.ok(whole.done, `seed ${seed}`)
        assert.deepEqual(whole.errors, expected, `seed ${seed}`)
        for (let cut = 1; cut < tailAt; cut += 1 + (seed > 3 ? 97 : 0)) {
          const walker = walkerOf(apiKey, version)
          assert.equal(walker.walk(body, 0, cut), cut, `seed ${seed} cut ${cut}`)
          assert.equal(walker.walk(body, cut, body.length), tailAt, `seed ${seed} cut ${cut}`)
          assert.deepEqual(walker.errors, expected, `seed ${seed} cut ${cut}`)
        }
        const bytewise = walkerOf(apiKey, version)
        for (let at = 0; at < tailAt; at++) assert.equal(bytewise.walk(body, at, at + 1), at + 1)
        assert.equal(bytewise.walk(body, tailAt, tailAt), tailAt)
        assert.deepEqual([bytewise.done, bytewise.errors], [true, expected], `seed ${seed}`)
      }
    })
}

test('random bytes end the walk or use them up, and never more', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const prng = new Prng(seed)
    const bytes = prng.bytes(prng.between(1, 4000))
    for (const [apiKey, version] of [
      [1, 4],
      [1, 12],
      [1, 17],
      [0, 3],
      [0, 11],
    ] as const) {
      const walker = walkerOf(apiKey, version)
      const at = walker.walk(bytes, 0, bytes.length)
      assert.ok(at >= 0 && at <= bytes.length)
      assert.ok(walker.done || at === bytes.length)
    }
  }
})
