/** Each rule against hand-made histories: what violates it, and what nearly does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Story, story } from './story.ts'

const cases: [name: string, story: Story, broken: { [rule: string]: number }][] = [
  ['a clean run', clean().drained(), {}],

  // key-order
  [
    'order: offset of a key goes back',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).took('m', 'a2', 'a1'),
    { 'key-order': 3 },
  ],
  ['order: another key may come first', story().wrote('a1', 0, 0).wrote('b2', 0, 1).took('m', 'b2', 'a1'), {}],
  [
    'order: only first deliveries count',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).took('m', 'a1', 'a2').sought('m', 0, 0).took('m', 'a1', 'a2'),
    {},
  ],
  [
    'order: a key moved to another partition and overtakes',
    story().sent('a1').sent('a2').acknowledged('a1', 0, 7).acknowledged('a2', 3, 0).took('m', 'a2', 'a1'),
    { 'key-order': 1 },
  ],
  [
    'order: two producers, the second sent after the first was acknowledged',
    story().wrote('a1', 0, 7).wrote('a2', 3, 0, { by: 'q' }).took('m', 'a2', 'a1'),
    { 'key-order': 1 },
  ],
  [
    'order: two producers at the same time have no order',
    story()
      .sent('a1')
      .sent('a2', { by: 'q' })
      .acknowledged('a1', 0, 7)
      .acknowledged('a2', 3, 0, { by: 'q' })
      .took('m', 'a2', 'a1'),
    {},
  ],
  [
    'order: per producer, two producers have no order',
    story().run({ perProducer: true }).wrote('a1', 0, 7).wrote('a2', 3, 0, { by: 'q' }).took('m', 'a2', 'a1'),
    {},
  ],
  [
    'order: a producer without order is judged by place and time only',
    story()
      .producer('p', { ordered: false })
      .sent('a1')
      .sent('a2')
      .acknowledged('a2', 0, 0)
      .acknowledged('a1', 0, 1)
      .took('m', 'a2', 'a1'),
    {},
  ],
  [
    'order: the group gave the member up, and it hands out what it had buffered',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).lost('m', 0).assigned('n', 0).took('n', 'a2').took('m', 'a1'),
    {},
  ],
  [
    'order: given up in another partition',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).lost('m', 1).assigned('n', 0).took('n', 'a2').took('m', 'a1'),
    { 'key-order': 3 },
  ],
  [
    'order: given up, and back',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).lost('m', 0).took('n', 'a2').assigned('m', 0).took('m', 'a1'),
    { 'key-order': 3 },
  ],

  // nothing-lost
  ['lost: never delivered', clean().wrote('z9', 0, 9).drained(), { 'nothing-lost': 1 }],
  ['lost: acknowledged after the drain', clean().drained().wrote('z9', 0, 9), {}],
  ['lost: no promise before the drain', clean().wrote('z9', 0, 9), {}],
  ['lost: never acknowledged', clean().sent('z9').failed('z9').drained(), {}],
  ['lost: retention took it', clean().wrote('z9', 1, 4).log('trimmed', 1, 5).drained(), {}],
  ['lost: retention ended below it', clean().wrote('z9', 1, 5).log('trimmed', 1, 5).drained(), { 'nothing-lost': 1 }],
  ['lost: an unclean leader cut it off', clean().wrote('z9', 1, 4).log('truncated', 1, 4).drained(), {}],
  [
    'lost: of a committed transaction',
    clean().wrote('z9', 1, 4, { in: 'x' }).transaction('x', 'committed').drained(),
    { 'nothing-lost': 1 },
  ],
  ['lost: of an aborted one', clean().wrote('z9', 1, 4, { in: 'x' }).transaction('x', 'aborted').drained(), {}],
  ['lost: of one that nobody saw end', clean().wrote('z9', 1, 4, { in: 'x' }).drained(), {}],
  [
    'lost: compaction keeps the last of a key',
    clean().wrote('z8', 1, 4).wrote('z9', 1, 5).drained({ compacted: true }),
    { 'nothing-lost': 1 },
  ],
  [
    'lost: compaction takes the earlier ones',
    clean().wrote('z8', 1, 4).wrote('z9', 1, 5).took('m', 'z9').drained({ compacted: true }),
    {},
  ],

  // duplicates-explained
  ['twice: no cause', clean().took('m', 'a1'), { 'duplicates-explained': 1 }],
  ['twice: after a seek', clean().sought('m', 0, 0).took('m', 'a1'), {}],
  [
    'twice: a seek on another partition is no cause',
    clean().sought('m', 1, 0).took('m', 'a1'),
    { 'duplicates-explained': 1 },
  ],
  ['twice: after a crash', clean().crashed('m').started('n').took('n', 'a1'), {}],
  ['twice: assigned again', clean().revoked('m', 0, 1).assigned('m', 0, 1).took('m', 'a1'), {}],
  [
    'twice: the former owner does not know yet',
    story().wrote('a1', 0, 0).assigned('m', 0).assigned('n', 0).took('m', 'a1').took('n', 'a1').lost('m', 0),
    {},
  ],
  [
    'twice: shared, two owners at once are no cause',
    story().run({ shared: true }).wrote('a1', 0, 0).assigned('m', 0).assigned('n', 0).took('m', 'a1').took('n', 'a1'),
    { 'duplicates-explained': 1 },
  ],
  ['written twice: no cause', clean().tookAt('m', 'a1', 0, 50), { 'duplicates-explained': 1 }],
  [
    'written twice: a cut while it was under way',
    story().sent('a1').fault().acknowledged('a1', 0, 5).tookAt('m', 'a1', 0, 4).took('m', 'a1'),
    {},
  ],
  [
    'written twice: a cut before it is no cause',
    story().fault().sent('a1').acknowledged('a1', 0, 5).tookAt('m', 'a1', 0, 4).took('m', 'a1'),
    { 'duplicates-explained': 1 },
  ],
  [
    'written twice: never of an idempotent producer',
    story()
      .producer('p', { idempotent: true })
      .sent('a1')
      .fault()
      .acknowledged('a1', 0, 5)
      .tookAt('m', 'a1', 0, 4)
      .took('m', 'a1'),
    { 'duplicates-explained': 1 },
  ],

  // one-member-per-key
  [
    'at once: another member while one works',
    twoKeys().given('m', 'a1').given('n', 'a2').done('m', 'a1').done('n', 'a2'),
    { 'one-member-per-key': 1 },
  ],
  ['at once: after it is done', twoKeys().given('m', 'a1').done('m', 'a1').given('n', 'a2').done('n', 'a2'), {}],
  ['at once: after it was given up', twoKeys().given('m', 'a1').revoked('m', 0).given('n', 'a2'), {}],
  [
    'at once: another partition given up',
    twoKeys().given('m', 'a1').revoked('m', 1).given('n', 'a2'),
    { 'one-member-per-key': 1 },
  ],
  [
    'at once: given up in a generation whose assignment it reads only then',
    twoKeys().lostIn(4, 'm', 0).assignedIn(4, 'm', 0).given('m', 'a1').given('n', 'a2'),
    {},
  ],
  [
    'at once: given up, and back in a later generation',
    twoKeys().lostIn(4, 'm', 0).assignedIn(5, 'm', 0).given('m', 'a1').given('n', 'a2'),
    { 'one-member-per-key': 1 },
  ],
  ['at once: the member died', twoKeys().given('m', 'a1').crashed('m').given('n', 'a2'), {}],
  [
    'at once: within the tolerance between two clocks',
    twoKeys().run({ slack: 3 }).given('m', 'a1').given('n', 'a2').done('m', 'a1').done('n', 'a2'),
    {},
  ],
  [
    'at once: beyond the tolerance',
    twoKeys().run({ slack: 3 }).given('m', 'a1').given('n', 'a2').later(9).done('m', 'a1').done('n', 'a2'),
    { 'one-member-per-key': 1 },
  ],
  [
    'at once: per producer, the other producer’s record',
    story()
      .run({ perProducer: true })
      .wrote('a1', 0, 0)
      .wrote('a2', 1, 0, { by: 'q' })
      .given('m', 'a1')
      .given('n', 'a2'),
    {},
  ],

  // committed-not-redelivered
  [
    'again: assigned after the commit',
    clean().committed('m', 0, 2).assigned('n', 0, 1).took('n', 'a1'),
    { 'committed-not-redelivered': 1 },
  ],
  ['again: from the commit on', clean().committed('m', 0, 1).assigned('n', 0, 1).took('n', 'b2'), {}],
  [
    'again: the new owner read the commit before it was raised',
    clean().assigned('n', 0, 1).committed('m', 0, 2).took('n', 'a1'),
    {},
  ],
  [
    'again: to the member that committed',
    clean().committed('m', 0, 2).assigned('n', 1).took('m', 'a1'),
    { 'committed-not-redelivered': 1, 'duplicates-explained': 1 },
  ],
  [
    'again: it sought while a commit was under way',
    clean().sought('m', 0, 0).committed('m', 0, 2).took('m', 'a1', 'b2').committed('m', 0, 1),
    {},
  ],
  [
    'again: below a commit of what was given after it sought',
    clean().sought('m', 0, 0).took('m', 'a1', 'b2').committed('m', 0, 2).took('m', 'a1'),
    { 'committed-not-redelivered': 1, 'duplicates-explained': 1 },
  ],
  ['again: it sought', clean().committed('m', 0, 2).sought('m', 0, 0).took('m', 'a1'), {}],
  [
    'again: inside a committed range',
    clean()
      .committed('m', 0, 0, [[1, 2]])
      .assigned('n', 0, 1)
      .took('n', 'a1', 'b2'),
    { 'committed-not-redelivered': 1 },
  ],
  [
    'again: shared, what the other member was given stays open',
    shared().took('m', 'a1').given('n', 'b2').committed('m', 0, 2).crashed('n').assigned('m', 0).took('m', 'b2'),
    {},
  ],
  [
    'again: shared, what the member committed itself',
    shared().took('m', 'a1').committed('m', 0, 1).crashed('m').assigned('n', 0).took('n', 'a1'),
    { 'committed-not-redelivered': 1 },
  ],

  // commit-not-above-processed
  ['commit: above what was given', clean().wrote('z9', 0, 2).committed('m', 0, 3), { 'commit-not-above-processed': 1 }],
  [
    'commit: above what is done',
    clean().wrote('z9', 0, 2).given('m', 'z9').committed('m', 0, 3),
    { 'commit-not-above-processed': 1 },
  ],
  [
    'commit: on delivery, where the run says so',
    clean().run({ processed: 'delivered' }).wrote('z9', 0, 2).given('m', 'z9').committed('m', 0, 3),
    {},
  ],
  ['commit: exactly what is done', clean().committed('m', 0, 2), {}],
  [
    'commit: a group that began later owes nothing',
    story().wrote('a1', 0, 0).wrote('a2', 0, 1).took('m', 'a2').committed('m', 0, 2),
    {},
  ],
  ['commit: goes back', clean().committed('m', 0, 2).committed('m', 0, 1), { 'commit-not-above-processed': 1 }],
  [
    'commit: a new owner goes back',
    clean().committed('m', 0, 2).assigned('n', 0, 1).committed('n', 0, 1),
    { 'commit-not-above-processed': 1 },
  ],
  ['commit: the late line of a former owner', clean().assigned('n', 0).committed('n', 0, 2).committed('m', 0, 1), {}],
  ['commit: back after a seek', clean().committed('m', 0, 2).sought('m', 0, 0).committed('m', 0, 1), {}],
  [
    'commit: a range that is not done',
    clean()
      .wrote('z9', 0, 2)
      .committed('m', 0, 2, [[2, 3]]),
    { 'commit-not-above-processed': 1 },
  ],
  ['commit: shared, another member’s open record', shared().given('n', 'b2').took('m', 'a1').committed('m', 0, 2), {}],
  [
    'commit: shared, its own open record',
    shared().given('m', 'a1').committed('m', 0, 1),
    { 'commit-not-above-processed': 1 },
  ],
  [
    'commit: shared, the broker’s own offset counts everybody',
    shared().given('n', 'b2').took('m', 'a1').committed('@broker', 0, 2),
    { 'commit-not-above-processed': 1 },
  ],

  // child-after-parents
  ['grown: the parent is done', grown().took('m', 'a1', 'b2').layout(1, 2, { 0: 2 }).took('n', 'c3'), {}],
  [
    'grown: the parent is not done',
    grown().took('m', 'a1').layout(1, 2, { 0: 2 }).took('n', 'c3').took('m', 'b2'),
    { 'child-after-parents': 1 },
  ],
  [
    'grown: given, but not done',
    grown().took('m', 'a1').given('m', 'b2').layout(1, 2, { 0: 2 }).took('n', 'c3').done('m', 'b2'),
    { 'child-after-parents': 1 },
  ],
  [
    'grown: above the boundary the parent owes nothing',
    grown().took('m', 'a1').layout(1, 2, { 0: 1 }).took('n', 'c3').took('m', 'b2'),
    {},
  ],

  [
    'grown: nobody knows whether the transaction before the boundary was committed, and nothing of it is given',
    grown()
      .sent('d4', { in: 'x' })
      .acknowledged('d4', 0, 2)
      .took('m', 'a1', 'b2')
      .layout(1, 2, { 0: 3 })
      .took('n', 'c3'),
    {},
  ],

  // identity
  ['identity: another record at the place', clean().tookAt('n', 'x8', 0, 0), { identity: 1 }],
  ['identity: another key', story().wrote('a1', 0, 0).tookAt('m', 'b1', 0, 0), { identity: 1 }],
  [
    'identity: the log was cut and written again',
    story().wrote('a1', 0, 0).log('truncated', 0, 0).tookAt('m', 'b2', 0, 0),
    {},
  ],
  [
    'identity: the acknowledgement of an overwritten record comes late',
    story().sent('a1').log('truncated', 0, 0).acknowledged('a1', 0, 0).wrote('b2', 0, 0).took('m', 'b2'),
    {},
  ],
  [
    'identity: an overwritten record was still buffered',
    story().wrote('a1', 0, 0).log('truncated', 0, 0).wrote('b2', 0, 0).took('m', 'b2').took('n', 'a1'),
    {},
  ],
  [
    'identity: both were sent after the log was cut',
    story().log('truncated', 0, 0).wrote('a1', 0, 0).wrote('b2', 0, 0),
    { identity: 1 },
  ],
  [
    'identity: the log was cut above the place',
    story().sent('a1').log('truncated', 0, 1).acknowledged('a1', 0, 0).wrote('b2', 0, 0),
    { identity: 1 },
  ],

  // aborted-unseen
  [
    'aborted: delivered',
    story().started('m').wrote('a1', 0, 0, { in: 'x' }).transaction('x', 'aborted').took('m', 'a1'),
    { 'aborted-unseen': 1 },
  ],
  [
    'aborted: to a member that reads uncommitted',
    story()
      .started('m', { isolation: 'read_uncommitted' })
      .wrote('a1', 0, 0, { in: 'x' })
      .transaction('x', 'aborted')
      .took('m', 'a1'),
    {},
  ],
  [
    'aborted: the same name of another producer',
    story().wrote('a1', 0, 0, { in: 'x' }).transaction('x', 'aborted', 'q').took('m', 'a1'),
    {},
  ],
]

for (const [name, { broken }, expected] of cases.map(([n, s, e]) => [n, { broken: s.broken() }, e] as const)) {
  test(name, () => assert.deepEqual(broken, expected))
}

/** One member reads two partitions, in order. */
function clean(): Story {
  return story()
    .started('m')
    .assigned('m', 0, 1)
    .wrote('a1', 0, 0)
    .wrote('b2', 0, 1)
    .wrote('c3', 1, 0)
    .took('m', 'a1', 'b2', 'c3')
}

/** Two records of one key in two partitions. */
function twoKeys(): Story {
  return story().started('m').started('n').wrote('a1', 0, 0).wrote('a2', 1, 0)
}

/** Two members share partition 0. */
function shared(): Story {
  return story()
    .run({ shared: true })
    .started('m')
    .started('n')
    .assigned('m', 0)
    .assigned('n', 0)
    .wrote('a1', 0, 0)
    .wrote('b2', 0, 1)
}

function grown(): Story {
  return story().wrote('a1', 0, 0).wrote('b2', 0, 1).wrote('c3', 1, 0)
}
