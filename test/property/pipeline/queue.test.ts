import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { checkAsync } from '../../support/property.ts'
import { Rig } from '../../support/rig.ts'
import { clientFrame, expectedReply, goesUpstream, ScriptedBroker, ScriptedHandler, type Step, steps } from './story.ts'

/** Requests that must keep their order upstream: same lane, or nothing that could make one wait. */
function staysInOrder(a: Step, b: Step): boolean {
  const lane = (step: Step) => (step.opened && (step.request === 'hold' || step.request === 'laned') ? step.lane : -1)
  const prompt = (step: Step) => !step.opened || step.request === 'pass'
  if (lane(a) >= 0 && lane(a) === lane(b)) return true
  return prompt(a) && prompt(b)
}

async function tell(story: readonly Step[], seed: number, kernelBytes: number): Promise<void> {
  const handler = new ScriptedHandler()
  const broker: ScriptedBroker = new ScriptedBroker(() => rig)
  const rig: Rig = await Rig.start({ seed, handlers: [handler], broker: (peer) => broker.attach(peer) })
  rig.runtime.kernelBytes = kernelBytes
  const client = rig.connect()
  await rig.run(() => client.connected)
  let atMs = 0
  for (const [tag, step] of story.entries()) {
    atMs += step.gapMs
    rig.runtime.timer(atMs, () => client.send(clientFrame(step, tag)))
  }
  const expected = story.flatMap((step, tag) => expectedReply(step, tag) ?? [])
  const upstream = story.flatMap((step, tag) => (goesUpstream(step) ? [tag] : []))
  await rig.run(() => client.frames.length >= expected.length && broker.tags.length >= upstream.length)
  await rig.run(undefined, 5000) // whatever should not come has time to come

  assert.deepEqual(rig.meter.reasons, [], JSON.stringify(rig.log.lines.at(-1)))
  assert.deepEqual(handler.problems, [])
  assert.equal(client.frames.length, expected.length, 'number of replies')
  expected.forEach((frame, i) =>
    assert.ok(client.frames[i]?.equals(frame), `reply ${i}: ${show(client.frames[i])} instead of ${show(frame)}`),
  )
  assert.deepEqual(
    [...broker.tags].sort((a, b) => a - b),
    upstream,
    'each request upstream once',
  )
  for (const [tag, body] of broker.bodies) {
    const sent = clientFrame(story[tag] as Step, tag)
    assert.ok(body.equals(sent.subarray(15)), `the body of request ${tag} changed`)
  }
  for (const [i, late] of broker.tags.entries())
    for (const early of broker.tags.slice(0, i))
      if (early > late && staysInOrder(story[late] as Step, story[early] as Step))
        assert.fail(`request ${early} overtook ${late}`)

  const { meter, connection } = rig
  assert.equal(meter.flying, 0)
  assert.equal(meter.requests.length, story.length)
  assert.equal(meter.responses.length, expected.length)
  assert.equal(handler.asked, handler.answered)
  assert.equal(connection.order.length + connection.sent.length + connection.holds.size, 0)
  for (const { proxyMs, brokerMs } of meter.latencies)
    assert.ok(proxyMs >= 0 && brokerMs >= 0 && brokerMs <= rig.runtime.now(), `latency ${proxyMs} + ${brokerMs}`)
}

function show(frame: Buffer | undefined): string {
  return frame === undefined ? 'nothing' : `${frame.readInt32BE(4)} ${frame.toString('latin1', 8, 28)}`
}

test('replies come in order, once, with the right ids, whatever handlers and broker do', async () => {
  await checkAsync(
    fc.asyncProperty(
      fc.array(steps, { minLength: 1, maxLength: 14 }),
      fc.integer({ min: 1 }),
      fc.constantFrom(64 * 1024, 16 * 1024, 1500),
      tell,
    ),
    80,
  )
})
