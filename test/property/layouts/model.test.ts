/** A few seeds of the layout model; `npm run model` runs as many as wanted and replays one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSeed } from '../../model/run.ts'

const from = Number(process.env.SEED ?? 1)

void test('order holds through changes of the partition count, whatever fails meanwhile', () => {
  let events = 0
  for (let seed = from; seed < from + 8; seed++) {
    const { failures, model } = runSeed({ seed })
    events += model.world.history.length
    const how = `seed ${seed}; replay: npm run model -- --seeds 1 --from ${seed} --trace`
    assert.deepEqual(failures, [], how)
  }
  assert.ok(events > 8 * 200, `only ${events} events`)
})
