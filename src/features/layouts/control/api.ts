/** Layouts and gates for the admin port: what people ask, answered or refused with what to do. */
import type { Cluster, TopicDescription } from '../../../cluster/cluster.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import { currentLayout } from '../../../state/topic-state.ts'
import type { TopicRule } from '../topic-rule.ts'
import type { ChangePlan, RefusalCode } from './change-plan.ts'
import type { GateView } from '../gates/topic-gates.ts'
import type { LayoutControl } from './layout-control.ts'
import type { TopicCoordinator } from './topic-coordinator.ts'
import { type GuardFacts, iso, topicRow, topicView } from './topic-view.ts'
import type { Outcome } from './wish.ts'

export interface GateSource {
  gatesOf(group: string): readonly GateView[]
  shutGroups(): readonly string[]
}

/** Partitions of a topic that nobody in a group is assigned. */
export interface UnassignedView {
  readonly topic: string
  readonly unassigned: readonly number[]
  /** The client that leads the group. */
  readonly leader: string
  /** Members whose Metadata has not had them yet, with how many partitions it had; 0: none was seen here. */
  readonly unaware: readonly { readonly instance: string; readonly member: string; readonly partitions: number }[]
  /** Since when there are such partitions, in milliseconds since 1970. */
  readonly sinceMs: number
}

export interface UnassignedSource {
  of(group: string): readonly UnassignedView[]
  /** Groups of which there are some. */
  groups(): readonly string[]
}

export interface GuardSource {
  guardOf(topicId: string): GuardFacts | undefined
}

export interface LayoutApiDeps {
  readonly runtime: Runtime
  readonly state: State
  readonly cluster: Cluster
  readonly control: LayoutControl
  readonly rules: readonly TopicRule[]
  readonly guards: GuardSource
  readonly gates: GateSource
  readonly unassigned: UnassignedSource
  /** Takes up a topic with a rule that was not met yet. */
  meet(topic: TopicDescription): void
}

interface Failure {
  readonly ok: false
  readonly status: number
  readonly code: string
  readonly message: string
  readonly fix: string | undefined
}

export type ApiAnswer = { readonly ok: true; readonly body: unknown } | Failure

const statusOf: Readonly<Record<RefusalCode, number>> = {
  HG_TO_INVALID: 400,
  HG_TO_SAME: 400,
  HG_TO_TOO_SMALL: 400,
  HG_TO_TOO_LARGE: 400,
  HG_NOT_MULTIPLE: 400,
  HG_CHANGE_IN_PROGRESS: 409,
  HG_NOT_SEALED: 409,
  HG_TOPIC_UNKNOWN: 404,
  HG_TOPIC_NO_RULE: 404,
  HG_STATE_UNAVAILABLE: 503,
}

/** How long a topic that nobody has used through this proxy yet is waited for. */
const MEET_MS = 3000
const MEET_STEP_MS = 50

interface Asked {
  readonly to: number
  readonly any: boolean
  readonly live: boolean
  readonly dryRun: boolean
}

export class LayoutApi {
  private readonly deps: LayoutApiDeps

  constructor(deps: LayoutApiDeps) {
    this.deps = deps
  }

  state(): unknown {
    return this.deps.state.status()
  }

  topics(): unknown {
    const all = this.deps.control.all().sort((a, b) => (a.topic.name < b.topic.name ? -1 : 1))
    return all.map(topicRow)
  }

  async topic(name: string): Promise<ApiAnswer> {
    const found = await this.find(name)
    if ('ok' in found) return found
    return { ok: true, body: this.view(found) }
  }

  async change(name: string, change: 'expand' | 'shrink', body: unknown): Promise<ApiAnswer> {
    const asked = read(body, change)
    if ('ok' in asked) return asked
    const found = await this.find(name)
    if ('ok' in found) return found
    const { to, any } = asked
    const live = this.goLive(found, change, asked)
    if (live !== undefined) return live
    const plan = found.plan({ change, to, any })
    if (plan.kind === 'refused') return failure(statusOf[plan.code], plan.code, plan.message, plan.fix)
    if (asked.dryRun) return { ok: true, body: { dryRun: true, ...describe(name, plan) } }
    const wish = found.change({ change, to, any, by: 'the admin API' })
    this.deps.control.wake()
    return this.answer(found, plan, asked, await wish)
  }

  gates(group: string): unknown {
    const { gates, unassigned } = this.deps
    return [...gates.gatesOf(group), ...unassigned.of(group)].map(({ sinceMs, ...row }) => ({
      ...row,
      since: iso(sinceMs),
    }))
  }

  shutGroups(): unknown {
    return [...new Set([...this.deps.gates.shutGroups(), ...this.deps.unassigned.groups()])]
  }

  private view(coordinator: TopicCoordinator): object {
    const { state, guards, runtime } = this.deps
    const now = { atMs: runtime.now(), wallMs: runtime.wallNow() }
    return topicView({ coordinator, guard: guards.guardOf(coordinator.topic.topicId), state, now })
  }

  private answer(coordinator: TopicCoordinator, plan: ChangePlan, { live }: Asked, outcome: Outcome): ApiAnswer {
    const { name } = coordinator.topic
    switch (outcome.kind) {
      case 'opened':
        if (live) this.announceLive(coordinator, outcome.epoch)
        return { ok: true, body: { ...describe(name, plan), epoch: outcome.epoch, live } }
      case 'aborted': {
        const fix = `put that right and ask again; headgate topics describe ${name} shows the topic`
        return failure(503, 'HG_CHANGE_ABORTED', `nothing was changed: ${outcome.reason}`, fix)
      }
      case 'refused':
        return failure(statusOf[outcome.code], outcome.code, outcome.message, outcome.fix)
    }
  }

  /** A shrink that is announced already, and is now to be shown to living producers too. */
  private goLive(coordinator: TopicCoordinator, change: 'expand' | 'shrink', asked: Asked): ApiAnswer | undefined {
    const topic = coordinator.topic.view()?.topic
    if (!asked.live || change !== 'shrink' || topic === undefined || topic.proposal !== undefined) return undefined
    const layout = currentLayout(topic)
    if (layout.change !== 'shrink' || layout.count !== asked.to || layout.isLive === true) return undefined
    if (!asked.dryRun) this.announceLive(coordinator, layout.epoch)
    const { epoch, count } = layout
    return {
      ok: true,
      body: { topic: topic.name, change, from: count, to: count, epoch, live: true, dryRun: asked.dryRun },
    }
  }

  private announceLive(coordinator: TopicCoordinator, epoch: number): void {
    coordinator.announceLive(epoch)
    this.deps.control.wake()
  }

  /** A topic that has just been met, as soon as the log knows it. */
  private async met(name: string): Promise<TopicCoordinator | undefined> {
    const { runtime, control } = this.deps
    for (let waited = 0; waited < MEET_MS; waited += MEET_STEP_MS) {
      const found = control.find(name)
      if (found?.topic.view() !== undefined) return found
      await new Promise<void>((resolve) => void runtime.timer(MEET_STEP_MS, resolve))
    }
    return control.find(name)
  }

  private async find(name: string): Promise<TopicCoordinator | Failure> {
    const known = this.deps.control.find(name)
    const isNew = known !== undefined && known.topic.view() === undefined && this.deps.state.mayAct()
    if (known !== undefined) return isNew ? ((await this.met(name)) ?? known) : known
    const described = await this.deps.cluster.describeTopics([name]).catch((error: Error) => error)
    if (described instanceof Error) {
      const fix = 'see that the brokers are up, and ask again'
      return failure(
        503,
        'HG_CLUSTER_UNREACHABLE',
        `the cluster cannot be asked for topic ${name}: ${described.message}`,
        fix,
      )
    }
    const [topic] = described
    if (topic === undefined) {
      const fix = 'headgate topics list shows the topics that have layouts'
      return failure(404, 'HG_TOPIC_UNKNOWN', `there is no topic ${name}`, fix)
    }
    if (this.deps.rules.some((rule) => rule.topic.test(name)) && !name.startsWith('__')) {
      this.deps.meet(topic)
      const met = await this.met(name)
      if (met !== undefined) return met
      return failure(503, 'HG_STATE_UNAVAILABLE', `topic ${name} has just been met`, 'ask again in a second')
    }
    const fix = `add topics: {${JSON.stringify(name)}: {layouts: {}}} to the configuration of every proxy`
    return failure(404, 'HG_TOPIC_NO_RULE', `topic ${name} has no layouts in the configuration`, fix)
  }
}

function failure(status: number, code: string, message: string, fix: string | undefined): Failure {
  return { ok: false, status, code, message, fix }
}

function describe(topic: string, { kind: _, ...plan }: ChangePlan): object {
  return { topic, ...plan }
}

/** The body of a change; what is not known there is refused, so that a misspelt `dryRun` changes nothing. */
function read(body: unknown, change: 'expand' | 'shrink'): Asked | Failure {
  const flags = change === 'expand' ? ['any', 'dryRun'] : ['live', 'dryRun']
  const fix = `send {"to": number${flags.map((flag) => `, "${flag}": true or false`).join('')}}`
  const invalid = (message: string): Failure => failure(400, 'HG_VALUE', message, fix)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return invalid('the body is not a JSON object')
  const { to, ...rest } = body as Record<string, unknown>
  if (typeof to !== 'number') return invalid('to is not a number of partitions')
  for (const [key, value] of Object.entries(rest)) {
    if (!flags.includes(key)) return invalid(`${key} is not known here`)
    if (typeof value !== 'boolean') return invalid(`${key} is not true or false`)
  }
  return { to, any: rest.any === true || change === 'shrink', live: rest.live === true, dryRun: rest.dryRun === true }
}
