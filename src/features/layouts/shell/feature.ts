/**
 * Layouts, put together: topics with a rule, their guards, and what Metadata shows of them. The coordinator and the gates
 * are plugged in here too. Without a rule none of this exists.
 */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { Meters } from '../../../telemetry/meter.ts'
import { currentLayout } from '../../../state/topic-state.ts'
import { defaultTimes, type LayoutTimes } from '../times.ts'
import type { TopicRule } from '../topic-rule.ts'
import { changeSeconds } from '../control/change-seconds.ts'
import { DrainedPartitions } from '../control/drained.ts'
import { LayoutControl } from '../control/layout-control.ts'
import { Ownership } from '../control/ownership.ts'
import type { GuardContext } from './context.ts'
import { ConsumerPushes } from './consumer-pushes.ts'
import { Counters, CutWaits } from './counters.ts'
import { Guards } from './guards.ts'
import { Showings } from './showings.ts'
import { Topics } from './topics.ts'
import { Writers } from './writers.ts'

const TIDY_MS = 30_000

const loopback = /^(::ffff:)?127\.|^::1$/

export interface LayoutsOptions {
  readonly rules: readonly TopicRule[]
  readonly state: State
  readonly cluster: Cluster
  readonly runtime: Runtime
  readonly log: Log
  readonly meters: Meters
  /** The address that the instance of a connection alone has; undefined: it is known by where it comes from. */
  addressOf(connection: Connection): string | undefined
  /** The name of the machine this proxy runs on, or of its pod. */
  readonly machine: string
  /** For tests: other bounds than the usual ones. */
  readonly times?: Partial<LayoutTimes>
}

export class LayoutsFeature {
  readonly topics: Topics
  readonly writers: Writers
  readonly guards: Guards
  readonly showings: Showings
  readonly control: LayoutControl
  readonly consumerPushes: ConsumerPushes
  readonly ownership = new Ownership()
  private readonly drained: DrainedPartitions
  private readonly options: LayoutsOptions
  /** Since when the state cannot be used, on the runtime's clock. */
  private lapsedAtMs: number | undefined
  private actCheckedMs = -Infinity
  private couldAct = false
  private timer: Timer | undefined

  constructor(options: LayoutsOptions) {
    const { state, cluster, runtime, log, meters } = options
    this.options = options
    // First of all listeners: whoever is told of a change asks afresh.
    state.onChange(() => this.lapsedForMs())
    this.topics = new Topics(options)
    this.writers = new Writers((connection) => this.nameOf(connection))
    const counted = new Counters(runtime, log, 'records of a key may be out of order')
    const refused = new Counters(runtime, log, '')
    const pushed = new Counters(runtime, log, '')
    const cuts = new CutWaits(log)
    const context: GuardContext = {
      state,
      cluster,
      runtime,
      writers: this.writers,
      counted,
      refused,
      pushed,
      cuts,
      mayAct: () => this.mayAct(),
      timesOf: (rule) => this.timesOf(rule),
      passesWithoutState: (rule) => this.passesWithoutState(rule),
      wake: () => this.guards.wake(),
    }
    this.guards = new Guards(context, this.topics)
    this.showings = new Showings(context, this.topics, this.guards)
    this.control = new LayoutControl(this.topics, {
      runtime,
      state,
      cluster,
      log,
      timesOf: (rule) => this.timesOf(rule),
    })
    this.drained = new DrainedPartitions({ runtime, cluster, log, ownership: this.ownership })
    this.showings.seeksGroup = (instance) => this.ownership.seeksGroup(instance)
    this.showings.consumerCount = (topic, { instance }) =>
      instance === undefined ? undefined : this.drained.count(topic, instance)
    const { topics, ownership, showings, drained } = this
    this.consumerPushes = new ConsumerPushes({ context, topics, ownership, showings, drained })

    this.topics.onSeen(({ name, topicId, count }) => this.control.noticed(name, topicId, count))
    meters.publish(counted.source('layout_disorder_total', 'Batches whose order could not be vouched for, by reason.'))
    meters.publish(refused.source('layout_refused_total', 'Batches answered with an error, by reason.'))
    meters.publish(pushed.source('layout_pushes_total', 'Instances made to ask for Metadata, by how.'))
    for (const source of [...cuts.sources(), changeSeconds(this.control, runtime)]) meters.publish(source)
    meters.publish({ name: 'layout_epoch', help: 'Layout of a topic.', type: 'gauge', read: () => this.epochs() })
    meters.publish({ name: 'layout_held', help: 'Batches held now.', type: 'gauge', read: () => this.held() })
  }

  start(): void {
    this.topics.start()
    this.tidyLater()
  }

  stop(): void {
    this.timer?.cancel()
    this.topics.stop()
    this.guards.stop()
    this.control.stop()
    this.drained.stop()
  }

  /** A name that means the same on every proxy that this client may reach. */
  private nameOf(connection: Connection): string {
    const address = this.options.addressOf(connection)
    // An address of its own is given by this proxy and means nothing to others.
    if (address !== undefined) return `${this.options.state.proxy}/${address}`
    const { remoteAddress, clientId } = connection
    // Every machine has clients at 127.0.0.1: those of two sidecars are not one.
    const machine = loopback.test(remoteAddress) ? `${this.options.machine}/` : ''
    return `${machine}${remoteAddress}/${clientId ?? ''}`
  }

  private timesOf({ sealAfterMs, goneAfterMs }: TopicRule): LayoutTimes {
    return { ...defaultTimes, ...this.options.times, sealAfterMs, goneAfterMs }
  }

  /** A lease is seconds long: an answer of the last millisecond is as good as a fresh one, and cheaper. */
  private mayAct(): boolean {
    const { runtime, state } = this.options
    const now = runtime.now()
    if (now >= this.actCheckedMs + 1 || now < this.actCheckedMs) {
      this.actCheckedMs = now
      this.couldAct = state.mayAct()
    }
    return this.couldAct
  }

  private lapsedForMs(): number {
    this.actCheckedMs = -Infinity
    const { runtime, state } = this.options
    if (state.mayAct()) this.lapsedAtMs = undefined
    else this.lapsedAtMs ??= runtime.now()
    return this.lapsedAtMs === undefined ? 0 : runtime.now() - this.lapsedAtMs
  }

  private passesWithoutState(rule: TopicRule): boolean {
    const boundMs = this.options.times?.holdBoundMs ?? defaultTimes.holdBoundMs
    return rule.stateLoss === 'pass' && this.lapsedForMs() >= boundMs
  }

  private tidyLater(): void {
    this.timer = this.options.runtime.timer(TIDY_MS, () => {
      this.guards.tidy()
      this.tidyLater()
    })
  }

  private epochs() {
    return [...this.guards.all()].flatMap(({ topic, view }) =>
      view === undefined ? [] : [{ labels: { topic: topic.name }, value: currentLayout(view.topic).epoch }],
    )
  }

  private held() {
    return [...this.guards.all()].map(({ topic, state }) => ({
      labels: { topic: topic.name },
      value: state.held.length,
    }))
  }
}
