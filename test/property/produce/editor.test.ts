/**
 * Random Produce requests, verdicts and delays: every batch that may go is in the log once, in the order in which its
 * partition's batches came; every request is answered once, in turn and in its own grouping.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkAsync } from '../../support/property.ts'
import { type Asked, forward, produce, produceRig, refuse, resultsOf } from '../../support/produce-rig.ts'

type Fate = 'now' | 'later' | 'refused' | 'refused later'

const fate = fc.constantFrom<Fate>('now', 'now', 'later', 'refused', 'refused later')
const part = fc.record({ guarded: fc.boolean(), partition: fc.nat({ max: 2 }), fate })
const request = fc.record({
  parts: fc.uniqueArray(part, {
    minLength: 1,
    maxLength: 4,
    selector: ({ guarded, partition }) => `${guarded}${partition}`,
  }),
  opened: fc.boolean(),
  pauseMs: fc.constantFrom(0, 0, 1, 5),
})

test('produce: order is kept, nothing is lost or doubled, each request is answered once', async () => {
  await checkAsync(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), fc.nat(), async (requests, seed) => {
      const { rig, client, policy, broker } = await produceRig({ seed })
      const fates = new Map<string, Fate>()
      const expected = new Map<string, string[]>()
      const lanes = new Map<string, Asked[]>()
      const frames = requests.map(({ parts, opened }, i) => {
        const letter = String.fromCharCode(97 + i)
        const data = parts.map(({ guarded, partition, fate: f }) => {
          const place = `${guarded ? 'g' : 'o'}/${partition}`
          fates.set(`${place} ${letter}`, guarded ? f : 'now')
          // A request that is not opened goes as it came: a policy lets that happen only where nothing waits.
          if (!guarded || !opened || !f.startsWith('refused'))
            expected.set(place, [...(expected.get(place) ?? []), letter])
          return [place, letter] as const
        })
        return produce(i + 1, { producerId: 7, data: Object.fromEntries(data) })
      })
      let calls = 0
      policy.opens = () => requests[calls++]?.opened === true || policy.asked.some(isWaiting)
      const isWaiting = (asked: Asked): boolean => lanes.get(placeOf(asked))?.includes(asked) === true
      const settle = (place: string): void => {
        const lane = lanes.get(place) ?? []
        for (let head = lane[0]; head !== undefined; head = lane[0]) {
          const f = fates.get(`${place} ${head.text}`)
          if (f === 'later' || f === 'refused later') break
          lane.shift()
          head.decide(f === 'refused' ? refuse : forward)
        }
      }
      policy.verdict = (batch, text) => {
        const place = `${batch.topic}/${batch.partition}`
        const f = fates.get(`${place} ${text}`) ?? 'now'
        const asked = policy.asked.at(-1)
        if (asked === undefined) return forward
        const lane = lanes.get(place) ?? []
        lanes.set(place, lane)
        if (lane.length === 0 && f === 'now') return forward
        if (lane.length === 0 && f === 'refused') return refuse
        lane.push(asked)
        if (f.endsWith('later')) {
          rig.runtime.timer(seed % 7, () => {
            fates.set(`${place} ${text}`, f === 'later' ? 'now' : 'refused')
            settle(place)
          })
        }
        return undefined
      }
      for (const [i, frame] of frames.entries()) {
        client.send(frame)
        const pauseMs = requests[i]?.pauseMs ?? 0
        if (pauseMs > 0) await rig.run(() => false, pauseMs)
      }
      await rig.run(() => client.frames.length === frames.length)
      await rig.run(() => false, 100)
      assert.deepEqual(
        client.frames.map((frame) => frame.readInt32BE(4)),
        frames.map((_, i) => i + 1),
      )
      for (const [place, letters] of expected) {
        const refused = (letter: string): boolean => !broker.logs.get(place)?.includes(letter)
        const kept = letters.filter((letter) => !refused(letter))
        assert.deepEqual(broker.logs.get(place) ?? [], kept, `order of ${place}`)
      }
      checkAnswers(requests, client.frames, broker.logs)
      for (const asked of policy.asked) {
        const isForwarded = broker.logs.get(placeOf(asked))?.includes(asked.text) === true
        assert.equal(asked.told, isForwarded ? 1 : 0, `${placeOf(asked)} ${asked.text}`)
      }
    }),
    150,
  )
})

function placeOf({ batch }: Asked): string {
  return `${batch.topic}/${batch.partition}`
}

/** Each result names the batch's place in the log, or its refusal; in the request's order. */
function checkAnswers(
  requests: readonly { parts: readonly { guarded: boolean; partition: number }[] }[],
  frames: readonly Buffer[],
  logs: ReadonlyMap<string, readonly string[]>,
): void {
  for (const [i, { parts }] of requests.entries()) {
    const letter = String.fromCharCode(97 + i)
    const wanted = parts.map(({ guarded, partition }) => {
      const place = `${guarded ? 'g' : 'o'}/${partition}`
      const at = logs.get(place)?.indexOf(letter) ?? -1
      return at < 0 ? `${place} 6@-1` : `${place} 0@${at}`
    })
    assert.deepEqual(resultsOf(frames[i]).sort(), wanted.sort())
  }
}
