import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { LayoutAnswer, LayoutSource } from '../../../src/admin/layout-routes.ts'
import { adminRoutes } from '../../../src/admin/routes.ts'
import { startAdmin } from '../../../src/admin/server.ts'
import type { Command } from '../../../src/cli/command.ts'
import { command as groups, gatesText } from '../../../src/cli/groups.ts'
import { command as topics } from '../../../src/cli/topics.ts'
import { planText } from '../../../src/cli/admin/topic-text.ts'
import { SlotMeters } from '../../../src/telemetry/meters.ts'

const asked: unknown[] = []
const ago = (ms: number) => new Date(Date.now() - ms).toISOString()
const view = (isSealed: boolean) => ({
  topic: 'orders',
  topicId: 'T',
  partitions: 6,
  exists: 6,
  epoch: 1,
  order: 'key',
  phase: isSealed ? 'settled' : 'unsealed',
  rule: { matches: 'orders', partitioner: 'auto', order: 'key', late: 'accept', stateLoss: 'hold' },
  seenBy: 'p1',
  held: 0,
  late: 7,
  counted: { 'late after the seal': 2 },
  cuts: 0,
  layouts: [
    { epoch: 0, partitions: 3, change: 'met', gates: 'seal', since: ago(9e6) },
    {
      epoch: 1,
      partitions: 6,
      change: 'expand',
      gates: 'seal',
      since: ago(5000),
      starts: { 3: 0 },
      votes: [{ proxy: 'p1', instances: 2 }],
      ...(isSealed
        ? { seal: { at: ago(0), boundaries: { 0: 12 }, gaveUp: [], forced: false } }
        : {
            stillWide: [{ instance: '10.0.0.2/old', partitions: 9 }],
            waitsFor: {
              proxies: [{ proxy: 'p2', host: 'h2', why: 'has not voted yet', since: ago(5000) }],
              instances: [{ instance: '10.0.0.1:producer', why: 'has not asked for Metadata since the change' }],
            },
          }),
    },
  ],
})

let looks = 0
const source: LayoutSource = {
  state: () => ({}),
  topics: () => [
    {
      topic: 'orders',
      phase: 'settled',
      since: ago(4000),
      partitions: 3,
      exists: 6,
      epoch: 0,
      order: 'key',
      matches: 'orders.*',
    },
  ],
  topic: async (name): Promise<LayoutAnswer> =>
    name === 'orders'
      ? { ok: true, body: view(++looks > 2) }
      : { ok: false, status: 404, code: 'HG_TOPIC_UNKNOWN', message: `there is no topic ${name}`, fix: 'list them' },
  change: async (topic, change, body): Promise<LayoutAnswer> => {
    asked.push([topic, change, body])
    const { to } = body as { to: number }
    if (to === 5) return { ok: false, status: 400, code: 'HG_NOT_MULTIPLE', message: 'no multiple', fix: '--any' }
    const plan = { topic, from: 3, to, change, gates: 'seal', fresh: [3, 4, 5], gaining: [] }
    return { ok: true, body: { ...plan, epoch: 1, ...(body as object) } }
  },
  gates: (group) => (group === 'a/b' ? [{ topic: 'orders', partition: 3, from: 0, seal: 1, since: ago(3000) }] : []),
  shutGroups: () => ['a/b'],
}

const admin = await startAdmin({
  host: '127.0.0.1',
  port: 0,
  allowChanges: false,
  onError: (error) => assert.fail(error),
  routes: adminRoutes({
    version: '0',
    meters: new SlotMeters(),
    log: { level: 'info' },
    readiness: () => ({ ready: true, reasons: [] }),
    nodes: () => [],
    clients: () => [],
    ranges: () => [],
    layouts: source,
    inspect: undefined,
    metrics: async () => ({ text: '', type: '' }),
  }),
})
after(() => admin.close())
const url = `http://127.0.0.1:${admin.port}`

async function run(command: Command, line: string, env: Record<string, string> = { HEADGATE_ADMIN: url }) {
  let [out, err] = ['', '']
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text), env }
  const code = await command.run(line.split(' '), io)
  return { code, out, err }
}
const usage = (command: Command, line: string, message: RegExp) =>
  assert.rejects(run(command, line), (error: Error) => error.name === 'UsageError' && message.test(error.message))

test('topics list: a table, or JSON', async () => {
  assert.deepEqual(await run(topics, 'list'), {
    code: 0,
    out:
      'TOPIC   PHASE    FOR  PARTITIONS  HIDDEN  EPOCH  ORDER  RULE\n' +
      'orders  settled  4 s           3       3      0  key    orders.*\n',
    err: '',
  })
  assert.deepEqual(
    (JSON.parse((await run(topics, `list --json --admin ${url}`, {})).out) as { topic: string }[])[0]?.topic,
    'orders',
  )
})

test('topics describe shows layouts, newest first, who is waited for, and what was counted', async () => {
  looks = 0
  const { code, out } = await run(topics, 'describe orders')
  assert.equal(code, 0)
  const found = out.split('\n').map((line) => line.trim())
  for (const line of [
    'topic orders: 6 partitions, unsealed',
    'new partitions begin at 3: 0',
    'not sealed; voted: p1',
    'waits for proxy p2 (h2): has not voted yet, for 5 s',
    'waits for client 10.0.0.1:producer: has not asked for Metadata since the change',
    'late batches 7, held now 0 (as proxy p1 sees it); normal until the change is sealed: they are kept in order',
    'order may be lost, late after the seal: 2',
  ])
    assert.ok(found.includes(line), `${line} is missing in\n${out}`)
  assert.ok(out.indexOf('epoch 1:') < out.indexOf('epoch 0:'))
})

test('topics expand and shrink send what was asked for, and say what happened', async () => {
  asked.length = 0
  const wide = await run(topics, 'expand orders --to 6')
  assert.deepEqual([wide.code, wide.err], [0, ''])
  assert.match(wide.out, /^topic orders went from 3 to 6 partitions \(expand, epoch 1\)\n {2}new: 3-5\n/)
  const dry = await run(topics, 'expand orders --to 7 --any --dry-run')
  assert.match(dry.out, /would go from 3 to 7[^]*nothing was changed\n$/)
  assert.match((await run(topics, 'shrink orders --to 2 --live')).out, /shown to living producers too/)
  assert.deepEqual(asked, [
    ['orders', 'expand', { to: 6 }],
    ['orders', 'expand', { to: 7, any: true, dryRun: true }],
    ['orders', 'shrink', { to: 2, live: true }],
  ])
})

test('--wait returns when the change is sealed, naming who is waited for', async () => {
  looks = 0
  const { code, out } = await run(topics, 'expand orders --to 6 --wait')
  assert.equal(code, 0)
  assert.match(out, /waiting, for \d+ s: proxy p2 has not voted yet; client 10\.0\.0\.1:producer has not asked/)
  assert.match(out, /sealed: epoch 1 of topic orders\n$/)
})

test('--wait for a shrink names who is to be restarted, and ends after --timeout while the change goes on', async () => {
  looks = -1000
  const { code, out, err } = await run(topics, 'shrink orders --to 2 --wait --timeout 1ms')
  assert.equal(code, 1)
  assert.match(out, /^topic orders went from 3 to 2/)
  assert.match(
    err,
    /epoch 1 of topic orders is not sealed yet; proxy p2 .*restart 10\.0\.0\.2\/old: it keeps 9 partitions/,
  )
  assert.match(err, /the change goes on: headgate topics describe orders\n$/)
})

test('a shrink that was announced before is not said to go from 3 to 3', () => {
  const shown = { topic: 'o', from: 3, to: 3, change: 'shrink', epoch: 4, live: true }
  assert.match(
    planText(shown),
    /^the shrink of topic o to 3 partitions \(epoch 4\) is now shown to living producers too/,
  )
  assert.match(planText({ ...shown, dryRun: true }), /would be shown to living producers too/)
})

test('a refusal is an error with code, message and fix; exit code 1', async () => {
  assert.deepEqual(await run(topics, 'expand orders --to 5'), {
    code: 1,
    out: '',
    err: 'headgate topics: no multiple (HG_NOT_MULTIPLE)\n  --any\n',
  })
  assert.deepEqual(await run(topics, 'describe nope'), {
    code: 1,
    out: '',
    err: 'headgate topics: there is no topic nope (HG_TOPIC_UNKNOWN)\n  list them\n',
  })
  const nobody = await run(topics, 'list --admin http://127.0.0.1:1', {})
  assert.equal(nobody.code, 1)
  assert.match(nobody.err, /no proxy answers at http:\/\/127\.0\.0\.1:1: .*\(HG_UNREACHABLE\)\n {2}start it, or name/)
})

test('what makes no sense is a usage error, and nothing is sent', async () => {
  asked.length = 0
  await usage(topics, 'grow orders', /say list, describe, expand or shrink, not grow/)
  await usage(topics, 'describe', /name the topic: headgate topics describe TOPIC/)
  await usage(topics, 'expand --to 6', /name the topic/)
  await usage(topics, 'expand orders', /--to N/)
  await usage(topics, 'expand orders --to six', /--to wants a whole number, not six/)
  await usage(topics, 'expand orders --to=-3', /--to wants a whole number, not -3/)
  await usage(topics, 'expand orders --to -1', /^--to wants a whole number, not -1$/)
  await usage(topics, 'expand orders --to --any', /^--to wants a value, not --any$/)
  await usage(topics, 'expand orders --to', /^--to wants a value$/)
  await usage(topics, 'expand orders 6', /^6 is one argument too many; did you mean --to 6\?$/)
  await usage(topics, 'list all', /^all is one argument too many$/)
  await usage(topics, 'expand orders --to 6 --any=yes', /^--any takes no value, not yes$/)
  await usage(topics, 'expand orders --to 6 --timeout 3s', /--timeout goes with --wait/)
  await usage(
    topics,
    'expand orders --to 6 --wait --timeout soon',
    /--timeout wants a duration such as 30s or 10m, not soon/,
  )
  await usage(topics, 'expand orders --to 6 --live', /--live does not go with expand/)
  await usage(topics, 'shrink orders --to 2 --any', /--any does not go with shrink/)
  await usage(topics, 'expand orders --too 6', /did you mean --to/)
  await usage(topics, 'list --admin nonsense', /nonsense is not the address of an admin port/)
  await usage(groups, 'gates', /name the group/)
  await usage(groups, 'show', /say list or gates, not show/)
  assert.deepEqual(asked, [])
})

test('groups: who waits, and each shut gate', async () => {
  assert.equal((await run(groups, 'list')).out, 'a/b\n')
  const shut = await run(groups, 'gates a/b')
  assert.match(shut.out, /^TOPIC +PARTITION +FROM +WAITS FOR .*\norders +3 +0 +the seal of epoch 1 +– +– +3 s\n$/)
  assert.equal((await run(groups, 'gates other')).out, 'group other has no shut gate here\n')
})

test('a gate behind a parent shows how far the group is', () => {
  const gate = { topic: 'o', partition: 3, from: 0, seal: 1, parent: 0, until: 120, since: '1970-01-01T00:00:00.000Z' }
  const text = gatesText('g', [gate, { ...gate, committed: 100, cut: 'c1' }], true, 600_000)
  assert.match(text, /partition 0 up to 120 +nothing +120 +10 min\n/)
  assert.match(text, /partition 0 up to 120 \(cut c1\) +100 +20 +10 min\n/)
})

test('partitions that nobody is assigned are said to be so, with the members that have not seen them', () => {
  const since = '1970-01-01T00:00:00.000Z'
  const row = { topic: 'o', unassigned: [3, 4, 5], leader: 'a/1', unaware: [], since }
  const unaware = [
    { instance: 'a/1', member: 'm1', partitions: 3 },
    { instance: 'b/2', member: 'm2', partitions: 0 },
  ]
  assert.equal(
    gatesText('g', [{ ...row, unaware }], false, 5000),
    'o partitions 3-5: not assigned yet, for 5 s; not seen yet by a/1 (leads, was shown 3), b/2 (was shown none)\n',
  )
  const gate = { topic: 'o', partition: 0, from: 7, cut: 'c', until: 4, since }
  const text = gatesText('g', [{ ...gate, parent: 3 }, { ...gate, partition: 1, parent: 2 }, row], false, 5000)
  assert.match(text, /^o +0 +7 +partition 3 up to 4 \(cut c\), not assigned yet +nothing/m)
  assert.match(text, /^o +1 +7 +partition 2 up to 4 \(cut c\) +nothing/m)
  assert.match(text, /\no partitions 3-5: .*; all members here have seen them; their leader a\/1 assigns them/)
})

test('a change that needs cuts says that groups wait for commits of what lies before them, in a dry run too', () => {
  const plan = { topic: 'o', from: 3, to: 5, change: 'expand', gates: 'cuts', fresh: [3, 4], gaining: [0, 1, 2] }
  const line = /^ {2}groups are given what lies behind a cut when they have committed what lies before it$/m
  assert.match(planText({ ...plan, dryRun: true }), line)
  assert.match(planText({ ...plan, epoch: 1 }), line)
  assert.doesNotMatch(planText({ ...plan, gates: 'seal' }), line)
})

test('after several cuts each partition has one row, for what its first records wait for; --all shows every gate', () => {
  const since = '1970-01-01T00:00:00.000Z'
  const gates = [0, 1].flatMap((partition) =>
    ['c1', 'c2'].flatMap((cut, nth) =>
      [4, 5].map((parent) => ({
        ...{ topic: 'o', partition, cut, parent, since },
        ...{ from: 50 + 100 * nth, until: parent * 100, committed: 90 },
      })),
    ),
  )
  const text = gatesText('g', gates, false, 60_000)
  const [, ...rows] = text.trimEnd().split('\n')
  assert.equal(rows.length, 3)
  assert.match(rows[0] ?? '', /^o +0 +50 +partition 5 up to 500 \(cut c1\) and 1 more +90 +410 +60 s$/)
  assert.match(rows[1] ?? '', /^o +1 +50 /)
  assert.equal(rows[2], '4 gates behind these, of later changes of layout: --all shows them')
  assert.equal(gatesText('g', gates, true, 60_000).trimEnd().split('\n').length, 9)
})
