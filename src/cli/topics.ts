/** `headgate topics`: layouts of topics, shown and changed, by a running proxy. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AdminCallError, AdminClient, adminHelp, adminOptions, reported } from './admin/client.ts'
import {
  type LayoutText,
  listText,
  type PlanText,
  planText,
  type TopicRow,
  topicText,
  type TopicText,
} from './admin/topic-text.ts'
import { waiting } from './admin/table.ts'
import { parseDuration } from '../config/units.ts'
import { type Command, type Io, readOptions, UsageError } from './command.ts'

const options = {
  ...adminOptions,
  to: { type: 'string' },
  any: { type: 'boolean' },
  live: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  wait: { type: 'boolean' },
  timeout: { type: 'string' },
} as const
type Values = ReturnType<typeof readOptions<typeof options>>

const LOOK_MS = 1000

export const command: Command = {
  help: `Usage: headgate topics list
       headgate topics describe TOPIC
       headgate topics expand TOPIC --to N [--any] [--dry-run] [--wait [--timeout TIME]]
       headgate topics shrink TOPIC --to N [--live] [--dry-run] [--wait [--timeout TIME]]

Shows and changes the partition count of topics that have layouts in the configuration, in order of each key.

      --to N         how many partitions the topic is to have
      --any          also a count that is no multiple of the present one: keys then move between the
                     existing partitions too, and every producer's change of layout waits for a cut
      --live         shrink: show it to producers that are running too, not only to those that start;
                     batches that cannot follow fail visibly
      --dry-run      say what would happen, and change nothing
      --wait         return when the change is sealed, and show who is waited for; a shrink is sealed
                     when the producers that keep more partitions were restarted (or with --live)
      --timeout TIME how long to wait at most, for example 10m; the change goes on after that
${adminHelp}

A change outlives the command and the proxy that was asked. Exit code 0 if it was done, 1 if it was refused or aborted
(nothing has been changed then), or is not sealed within --timeout, 2 for wrong options.`,
  async run(args, io) {
    const [action = '', ...rest] = args
    const run = Object.hasOwn(actions, action) ? actions[action as keyof typeof actions] : undefined
    if (run === undefined)
      throw new UsageError(`say list, describe, expand or shrink${action === '' ? '' : `, not ${action}`}`)
    const isNamed = action !== 'list'
    const topic = isNamed ? rest[0] : ''
    if (topic === undefined || topic.startsWith('-'))
      throw new UsageError(`name the topic: headgate topics ${action} TOPIC`)
    const values = readOptions(isNamed ? rest.slice(1) : rest, options, (argument) =>
      /^\d+$/.test(argument) && allowed[action]?.includes('to') ? `--to ${argument}` : undefined,
    )
    checkOptions(action, values)
    return reported('topics', io, () => run(new AdminClient(values.admin, io), topic, values, io))
  },
}

const allowed: Readonly<Record<string, readonly string[]>> = {
  list: ['admin', 'json'],
  describe: ['admin', 'json'],
  expand: ['admin', 'json', 'to', 'any', 'dry-run', 'wait', 'timeout'],
  shrink: ['admin', 'json', 'to', 'live', 'dry-run', 'wait', 'timeout'],
}

function checkOptions(action: string, values: Values): void {
  const wrong = Object.keys(values).find((name) => !allowed[action]?.includes(name))
  if (wrong !== undefined) throw new UsageError(`--${wrong} does not go with ${action}`)
  if (values.timeout !== undefined && !values.wait) throw new UsageError('--timeout goes with --wait')
}

type Action = (admin: AdminClient, topic: string, values: Values, io: Io) => Promise<number>

const pathOf = (topic: string): string => `/api/topics/${encodeURIComponent(topic)}`

const list: Action = async (admin, _, { json }, io) => {
  const rows = await admin.get('/api/topics')
  io.out(json ? toJson(rows) : listText(rows as TopicRow[], Date.now()))
  return 0
}

const describe: Action = async (admin, topic, { json }, io) => {
  const found = await admin.get(pathOf(topic))
  io.out(json ? toJson(found) : topicText(found as TopicText, Date.now()))
  return 0
}

const change =
  (what: 'expand' | 'shrink'): Action =>
  async (admin, topic, values, io) => {
    const { any, live, wait, json, 'dry-run': dryRun } = values
    const waitMs = patienceOf(values.timeout)
    const flags = { ...(any && { any }), ...(live && { live }), ...(dryRun && { dryRun }) }
    const plan = (await admin.post(`${pathOf(topic)}/${what}`, { to: countOf(values.to), ...flags })) as PlanText
    if (!wait || dryRun) {
      io.out(json ? toJson(plan) : planText(plan))
      return 0
    }
    if (!json) io.out(planText(plan))
    const sealed = await waitForSeal(admin, topic, plan.epoch ?? 0, waitMs, json ? undefined : io)
    if (json) io.out(toJson(sealed))
    return 0
  }

const actions = { list, describe, expand: change('expand'), shrink: change('shrink') } as const

function countOf(text: string | undefined): number {
  if (text === undefined) throw new UsageError('say how many partitions the topic is to have: --to N')
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--to wants a whole number, not ${text}`)
  return Number(text)
}

/** In milliseconds; without a time for ever. */
function patienceOf(text: string | undefined): number {
  if (text === undefined) return Infinity
  const ms = parseDuration(text)
  if (ms === undefined) throw new UsageError(`--timeout wants a duration such as 30s or 10m, not ${text}`)
  return ms
}

/**
 * Looks until the change is sealed, and says who is waited for whenever that is another one.
 * Throws `AdminCallError` when it is not sealed after `waitMs`.
 */
async function waitForSeal(
  admin: AdminClient,
  topic: string,
  epoch: number,
  waitMs: number,
  io: Io | undefined,
): Promise<unknown> {
  let said = ''
  const deadline = performance.now() + waitMs
  for (;;) {
    const found = (await admin.get(pathOf(topic))) as TopicText
    const layout = found.layouts?.find((other) => other.epoch === epoch)
    if (layout?.seal !== undefined) {
      io?.out(`sealed: epoch ${epoch} of topic ${topic}\n`)
      return found
    }
    const { who, since, atMost } = waitedFor(layout)
    if (performance.now() >= deadline) {
      const fix = `the change goes on: headgate topics describe ${topic}`
      throw new AdminCallError('HG_NOT_SEALED', `epoch ${epoch} of topic ${topic} is not sealed yet; ${who}`, fix)
    }
    if (who !== said) io?.out(`waiting${waiting(since, atMost, Date.now())}: ${who}\n`)
    said = who
    await sleep(Math.min(LOOK_MS, Math.max(0, deadline - performance.now())))
  }
}

function waitedFor(layout: LayoutText | undefined): { who: string; since?: string; atMost?: string } {
  const { proxies = [], instances = [] } = layout?.waitsFor ?? {}
  const who = [
    ...proxies.map(({ proxy, why }) => `proxy ${proxy} ${why}`),
    ...instances.map(({ instance, why }) => `client ${instance} ${why}`),
    ...(layout?.stillWide ?? []).map(
      ({ instance, partitions }) => `restart ${instance}: it keeps ${partitions} partitions`,
    ),
  ]
  const { since, atMost } = [...proxies, ...instances][0] ?? {}
  return {
    who: who.length === 0 ? 'nobody is named by this proxy' : who.join('; '),
    ...(since !== undefined && { since }),
    ...(atMost !== undefined && { atMost }),
  }
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
