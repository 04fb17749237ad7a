import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultTimes as times } from '../../../../src/features/layouts/times.ts'
import { batch, Bench, named } from './guard-bench.ts'

void test('without a view everything waits, and goes on in its order once there is one', () => {
  const bench = new Bench()
  const [first, second] = [batch(0, [0]), batch(0, [3])]
  assert.deepEqual(bench.do({ type: 'batch', batch: first }), [])
  assert.deepEqual(bench.do({ type: 'batch', batch: second }), [])
  const effects = bench.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 }).view()
  assert.deepEqual(effects, [
    { type: 'forward', batch: first },
    { type: 'forward', batch: second },
  ])
})

void test('a late batch is forwarded while no vote stands', () => {
  const bench = new Bench().open(6, 'seal')
  bench.do({ type: 'batch', batch: batch(0, [0]) })
  bench.view()
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(1, [4]) })), ['forward'])
})

void test('a late batch waits until the vote of its proxy is taken back in the log', () => {
  const bench = new Bench().open(6, 'seal')
  const voted = bench.view()
  assert.deepEqual(named(voted), ['vote'])
  bench.loop(voted)
  const effects = bench.do({ type: 'batch', batch: batch(1, [4]) })
  assert.deepEqual(named(effects), ['withdrawal'])
  assert.deepEqual(named(bench.loop(effects)), ['forward'])
})

void test('where the seal came first the late batch is forwarded and counted', () => {
  const bench = new Bench().open(6, 'seal')
  bench.loop(bench.view())
  const effects = bench.do({ type: 'batch', batch: batch(1, [4]) })
  bench.write({ kind: 'vote', proxy: 'b', epoch: 1, ballot: 1, instances: [], ends: {} })
  const lastVote = bench.position - 1
  bench.write({
    kind: 'sealed',
    proxy: 'b',
    epoch: 1,
    lastVote,
    boundaries: { 0: 0, 1: 0, 2: 0 },
    gaveUp: [],
    forced: false,
  })
  assert.deepEqual(named(bench.loop(effects)), ['late after the seal', 'forward'])
})

void test('votes when its instances are clean, naming them and the ends it saw acknowledged', () => {
  const bench = new Bench().open(6, 'seal')
  const old = batch(1, [4])
  bench.do({ type: 'batch', batch: old })
  assert.deepEqual(named(bench.view()), ['forward'])
  bench.do({ type: 'answered', id: old.id, end: 12, lapsed: false }, 500)
  bench.do({ type: 'shown', instance: 'i', epoch: 1 }, 1000)
  assert.deepEqual(bench.do({ type: 'tick' }, 3999), [])
  const [vote] = bench.do({ type: 'tick' }, 4000)
  const record = {
    kind: 'vote',
    proxy: 'a',
    topicId: 'T',
    epoch: 1,
    ballot: 1,
    instances: ['i'],
    ends: { 1: 12 },
    seen: 8,
  }
  assert.deepEqual(vote, { type: 'append', record })
})

void test('the first batch of a new layout waits for quiet, ends, the cut and its readers; old ones pass', () => {
  const bench = new Bench().open(5, 'cuts')
  bench.loop(bench.view())
  const fresh = batch(4, [4])
  const effects = bench.do({ type: 'batch', batch: fresh }, 1000)
  assert.deepEqual(named(effects), [])
  assert.deepEqual(named(bench.do({ type: 'tick' }, 1499)), ['withdrawal'])
  const late = batch(1, [4])
  bench.write({ kind: 'withdrawal', proxy: 'a', epoch: 1, ballot: 1 }).view()
  assert.deepEqual(named(bench.do({ type: 'batch', batch: late }, 1450)), ['forward'])
  bench.do({ type: 'answered', id: late.id, end: 31, lapsed: false }, 1460)
  assert.deepEqual(named(bench.do({ type: 'tick' }, 1959)), [])
  const [ask] = bench.do({ type: 'tick' }, 1960)
  assert.ok(ask?.type === 'read-ends')
  const recorded = bench.do({ type: 'ends', round: ask.round, ends: { 0: 5, 1: 30, 2: 5, 3: 0, 4: 0 } })
  const [cut] = recorded
  assert.ok(cut?.type === 'append' && cut.record.kind === 'cut')
  assert.deepEqual(cut.record.ends, { 0: 5, 1: 31, 2: 5, 3: 0, 4: 0 })
  const read = bench.loop(recorded)
  assert.deepEqual(named(read), ['cut-read'])
  assert.deepEqual(named(bench.loop(read)), [])
  bench.write({ kind: 'cut-read', proxy: 'b', cut: cut.record.cut })
  const inForce = bench.view()
  assert.deepEqual(named(inForce), ['forward'])
  assert.deepEqual(inForce[0], { type: 'cut', instance: 'i', waitedMs: 960 })
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(1, [4]) })), ['late after its cut', 'forward'])
})

void test('a batch that would block its own connection is answered 6 where that reorders nothing', () => {
  const bench = new Bench().open(5, 'cuts')
  bench.loop(bench.view())
  const alone = batch(4, [4], { hasRoom: false, mayRefuse: true })
  assert.deepEqual(named(bench.do({ type: 'batch', batch: alone })), ['refuse'])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(4, [9], { hasRoom: false }) })), [])
})

void test('what is refused only because the rest of its request waits does not keep the cut from being taken', () => {
  for (const type of ['withheld', 'failed'] as const) {
    const bench = new Bench().open(5, 'cuts')
    bench.view()
    const serial = { hasRoom: false, mayRefuse: true }
    const alike = batch(0, [0], serial)
    assert.deepEqual(named(bench.do({ type: 'batch', batch: alike }, 1000)), ['forward'])
    bench.do({ type: 'batch', batch: batch(4, [4], serial) })
    bench.do({ type, id: alike.id })
    const asked = named(bench.do({ type: 'tick' }, 1600)).includes('read-ends')
    assert.equal(asked, type === 'withheld', type)
  }
})

void test('what waits too long is answered retriably, with what waits behind it', () => {
  const bench = new Bench()
  bench.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 }).view()
  bench.do({ type: 'batch', batch: batch(7, [7]) }, 0)
  bench.do({ type: 'batch', batch: batch(7, [7]) }, 8000)
  assert.deepEqual(named(bench.do({ type: 'tick' }, times.holdBoundMs - 1)), [])
  assert.deepEqual(named(bench.do({ type: 'tick' }, times.holdBoundMs)), ['refuse', 'refuse'])
})

void test('what may not be refused any more, since the rest of its request has gone, goes when its time is over', () => {
  const bench = new Bench()
  bench.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 }).view()
  const bound = batch(7, [7])
  bench.do({ type: 'batch', batch: bound }, 0)
  bench.do({ type: 'bound', id: bound.id })
  assert.deepEqual(named(bench.do({ type: 'tick' }, times.holdBoundMs)), ['held too long', 'forward'])
})

void test('what is before it in its lane goes when its own time is over, and is not refused', () => {
  const bench = new Bench()
  bench.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 }).view()
  const [first, bound] = [batch(7, [7]), batch(7, [7])]
  bench.do({ type: 'batch', batch: first }, 0)
  bench.do({ type: 'batch', batch: bound }, 100)
  bench.do({ type: 'bound', id: bound.id })
  assert.deepEqual(named(bench.do({ type: 'tick' }, times.holdBoundMs)), ['held too long', 'forward'])
  assert.deepEqual(named(bench.do({ type: 'tick' }, times.holdBoundMs + 100)), ['held too long', 'forward'])
})

void test('what waited when its connection was lost leaves its lane, and may come back', () => {
  const bench = new Bench().open(6, 'seal')
  bench.loop(bench.view())
  const late = batch(1, [4])
  bench.do({ type: 'batch', batch: late })
  bench.do({ type: 'dropped', id: late.id })
  assert.equal(bench.guard.held.length, 0)
  assert.deepEqual(
    bench.guard.ledgers.get('i')?.owed.map(({ mark }) => mark),
    [late.mark],
  )
  assert.deepEqual(named(bench.view()), [])
})

void test('a batch that never comes back does not make a cut without quiet', () => {
  const bench = new Bench().open(5, 'cuts')
  bench.loop(bench.view())
  const old = batch(1, [1])
  bench.do({ type: 'batch', batch: old }, 0)
  bench.do({ type: 'failed', id: old.id }, 0)
  bench.do({ type: 'batch', batch: batch(4, [4]) }, 100)
  const { cutComeBackMs, cutBoundMs } = times
  assert.ok(!named(bench.do({ type: 'tick' }, cutComeBackMs - 1)).includes('read-ends'))
  const effects = bench.do({ type: 'tick' }, cutComeBackMs)
  const [read] = effects.filter((effect) => effect.type === 'read-ends')
  assert.ok(read !== undefined && cutComeBackMs < cutBoundMs)
  const ends = { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 }
  bench.loop(bench.do({ type: 'ends', round: read.round, ends }))
  const cut = bench.topic?.cuts[0]?.id ?? assert.fail('no cut')
  bench.write({ kind: 'cut-read', proxy: 'a', cut }).write({ kind: 'cut-read', proxy: 'b', cut })
  assert.deepEqual(named(bench.view()), ['forward'], 'and not counted')
})

void test('a cut that was taken without quiet is counted, if its producer is quiet again by then, too', () => {
  const { cutBoundMs, cutQuietMs } = times
  for (const hasOlder of ['before its ends are read', 'after that']) {
    const bench = new Bench().open(5, 'cuts')
    bench.loop(bench.view())
    const slow = batch(1, [4])
    const isAfter = hasOlder === 'after that'
    const sendSlow = () => bench.loop(bench.do({ type: 'batch', batch: slow }, isAfter ? cutBoundMs : 0))
    if (!isAfter) sendSlow()
    bench.do({ type: 'batch', batch: batch(4, [4]) }, 0)
    const [read] = bench.do({ type: 'tick' }, cutBoundMs).filter((effect) => effect.type === 'read-ends')
    assert.ok(read !== undefined)
    if (isAfter) sendSlow()
    bench.loop(bench.do({ type: 'ends', round: read.round, ends: { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 } }))
    const cut = bench.topic?.cuts[0]?.id ?? assert.fail('no cut')
    bench.do({ type: 'answered', id: slow.id, end: 1, lapsed: false }, cutBoundMs + 1)
    bench.do({ type: 'tick' }, cutBoundMs + 1 + cutQuietMs)
    bench.write({ kind: 'cut-read', proxy: 'a', cut }).write({ kind: 'cut-read', proxy: 'b', cut })
    assert.deepEqual(named(bench.view()), ['cut without quiet', 'forward'], hasOlder)
  }
})

void test('a batch acknowledged after the lease lapsed is counted', () => {
  const bench = new Bench()
  bench.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 }).view()
  const sent = batch(0, [0])
  bench.do({ type: 'batch', batch: sent })
  assert.deepEqual(named(bench.do({ type: 'answered', id: sent.id, end: 1, lapsed: true })), [
    'acknowledged after the lease',
  ])
})

void test('while a change is prepared it says ready, and holds what only the new layout explains', () => {
  const bench = new Bench()
  bench
    .write({ kind: 'topic', proxy: 'b', name: 't', count: 3 })
    .write({
      kind: 'proposal',
      proxy: 'b',
      proposal: 'x',
      after: 0,
      change: 'expand',
      to: 5,
      order: 'key',
      gates: 'cuts',
    })
    .write({ kind: 'preparing', proxy: 'b', proposal: 'x' })
  assert.deepEqual(named(bench.view()), ['ready'])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(1, [6]) })), [])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(2, [5]) })), ['forward'])
})

/** Instance i came here at 1000, after the change; `b` votes for it having read up to `seen`. */
function votedElsewhere(seen: (bench: Bench) => number): string[] {
  const bench = new Bench().open(5, 'cuts')
  bench.view()
  bench.do({ type: 'connected', instance: 'i', connection: '1' }, 1000)
  bench.do({ type: 'writer', instance: 'i', wrote: true })
  bench.write({ kind: 'cut', proxy: 'b', cut: 'c', layouts: [0, 1], ends: {} }).view(1100)
  bench.write({ kind: 'cut-read', proxy: 'b', cut: 'c' }).view(1200)
  bench.write({ kind: 'vote', proxy: 'b', epoch: 1, ballot: 1, instances: ['i'], ends: {}, seen: seen(bench) })
  return named(bench.view(1300))
}

void test('an instance that another proxy vouches for while it is here is at two proxies', () => {
  assert.ok(votedElsewhere((bench) => bench.position + 1).includes('at two proxies'))
})

void test('one whose other proxy may have voted before it came here is not', () => {
  assert.ok(!votedElsewhere((bench) => bench.position).includes('at two proxies'))
})

void test('one that another proxy cuts for while it is here is at two proxies; once the cut is in force nobody is named', () => {
  const bench = new Bench()
  bench.do({ type: 'connected', instance: 'i', connection: '1' }, 0)
  bench.do({ type: 'writer', instance: 'i', wrote: true })
  bench.atMs = 500
  bench.open(5, 'cuts').view(600)
  const cut = { kind: 'cut', proxy: 'b', cut: 'c', layouts: [0, 1], ends: {}, seen: bench.position } as const
  const found = bench.write({ ...cut, layouts: [0, 1], serves: ['i'] }).view(700)
  assert.deepEqual(named(found), ['cut-read', 'at two proxies', 'split'])
  assert.deepEqual(bench.topic?.cuts[0]?.serves, ['i'])
  bench.write({ kind: 'cut-read', proxy: 'a', cut: 'c' }).write({ kind: 'cut-read', proxy: 'b', cut: 'c' })
  assert.equal(bench.topic?.cuts[0]?.serves, undefined)
})
