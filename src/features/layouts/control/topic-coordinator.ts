/**
 * The coordinator of one topic at one proxy: the shell around `reduceCoordinator`. It is fed with views and ticks, does
 * what the reducer says, and follows the wishes that were made here to their end.
 * Invariant: records are appended only while this proxy may act; what is asked of the cluster twice does no harm.
 */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import { currentLayout, layoutOf, type Proposal, type TopicState, widestCount } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import type { Log } from '../../../telemetry/log.ts'
import {
  type CoordinatorEffect,
  type CoordinatorEvent,
  type CoordinatorState,
  newCoordinator,
  reduceCoordinator,
} from '../expansion.ts'
import { defaultTimes, type LayoutTimes } from '../times.ts'
import type { LayoutTopic, TopicRule } from '../topic-rule.ts'
import { unsealed } from '../votes.ts'
import { type ChangePlan, type ChangeRequest, makePlan, planChange, refuse } from './change-plan.ts'
import { TopicNews } from './topic-news.ts'
import { fateOf, type Outcome, proposalOf } from './wish.ts'

export interface CoordinatorDeps {
  readonly runtime: Runtime
  readonly state: State
  readonly cluster: Cluster
  readonly log: Log
  /** Bounds of a topic's changes. */
  timesOf(rule: TopicRule): LayoutTimes
}

/** Creates a change's partitions otherwise than on our own connection. */
export interface Creation {
  /** Nobody else may create them: it was said which brokers they are for. */
  readonly isAssigned: boolean
  create(): Promise<void>
}

/** Does not pass by itself: asking again is of no use. */
interface FinalError {
  readonly passes?: boolean
  readonly message: string
}

interface Wish {
  readonly plan: ChangePlan
  readonly id: string
  readonly creation: Creation | undefined
  isCreating: boolean
  seen: Proposal | undefined
  sentMs: number
  readonly deadlineMs: number
  settle(outcome: Outcome): void
}

/** How long a final refusal is given for somebody else (the asker's own connection) to have created them. */
const REFUSED_MS = 3000
/** By then the log has said `open` or `aborted`, if it can be read at all: the bounds of both phases, and some room. */
const DECIDED_MS = 4 * defaultTimes.prepareBoundMs + 10_000

export class TopicCoordinator {
  readonly topic: LayoutTopic
  readonly times: LayoutTimes
  /** Partitions that the cluster was last seen to have; 0: not seen. */
  exists = 0
  private readonly deps: CoordinatorDeps
  private readonly news: TopicNews
  private state: CoordinatorState
  private wish: Wish | undefined
  private wishes = 0
  private live: { epoch: number; sentMs: number } | undefined
  private isObserving = false
  private isCreating = false
  /** The refusal that people were told of last. */
  private told = ''
  /** The change whose partitions the cluster has refused for good, and since when. */
  private refusal: { proposal: string; sinceMs: number } | undefined

  constructor(topic: LayoutTopic, deps: CoordinatorDeps) {
    this.topic = topic
    this.deps = deps
    this.news = new TopicNews(deps.log)
    this.times = deps.timesOf(topic.rule)
    this.state = newCoordinator(deps.state.proxy, this.times)
  }

  /**
   * Nothing can happen until a view, a wish or the cluster says something new: no ticks are needed. As long as there are
   * cuts, it is looked now and then whether they can be forgotten.
   */
  get isIdle(): boolean {
    const topic = this.topic.view()?.topic
    if (this.wish !== undefined || this.live !== undefined) return false
    if (topic === undefined) return true
    const layout = currentLayout(topic)
    const isUnannounced = layout.change === 'shrink' && layout.announcedAt === undefined
    return (
      topic.cuts.length === 0 &&
      topic.proposal === undefined &&
      !isUnannounced &&
      unsealed({ topic } as View).length === 0
    )
  }

  /** The state, the leader or this proxy's id may have changed. */
  feed(): void {
    const { state } = this.deps
    if (this.state.proxy !== state.proxy) this.state = newCoordinator(state.proxy, this.times)
    if (!state.mayAct()) return
    const view = this.topic.view()
    if (view !== undefined) this.news.look(view.topic)
    if (this.state.isLeader !== state.isLeader()) this.reduce({ type: 'leader', isLeader: state.isLeader() })
    if (view !== undefined && view !== this.state.view) this.reduce({ type: 'view', view })
    this.follow()
  }

  tick(): void {
    this.feed()
    this.giveUp()
    if (this.deps.state.mayAct()) this.reduce({ type: 'tick' })
  }

  /** What would be done; the same that `change` does. */
  plan(request: ChangeRequest) {
    const view = this.topic.view()
    if (view === undefined || !this.deps.state.mayAct()) {
      const message = `the state of topic ${this.topic.name} cannot be had: ${this.deps.state.status().problem ?? 'it was not read yet'}`
      return refuse('HG_STATE_UNAVAILABLE', message, 'ask again when /api/state says ready')
    }
    return planChange(view.topic, this.topic.rule.order, request)
  }

  /** Begins a change. Resolves when it is open, aborted or refused; the change goes on whether somebody waits or not. */
  change(request: ChangeRequest, creation?: Creation): Promise<Outcome> {
    const { name: topic } = this.topic
    const plan = this.plan(request)
    const { change, to, by } = request
    if (plan.kind === 'refused') {
      const { code, message } = plan
      this.deps.log.warn({ topic, change, to, by, code }, `a change was asked for and refused: ${message}`)
      return Promise.resolve(plan)
    }
    this.deps.log.info({ topic, change, from: plan.from, to, by }, 'a change was asked for')
    if (this.wish !== undefined) {
      const message = `a change of topic ${this.topic.name} to ${this.wish.plan.to} partitions has just been asked for`
      return Promise.resolve(refuse('HG_CHANGE_IN_PROGRESS', message, 'wait for it'))
    }
    return this.begin(plan, creation)
  }

  /** Shows a shrink to living instances too, as soon as that is in the log. */
  announceLive(epoch: number): void {
    this.live = { epoch, sentMs: -Infinity }
    this.follow()
  }

  /** Partitions that the cluster has now, with those that are hidden. Rejects where it cannot be asked. */
  async countExisting(): Promise<number> {
    const topics = await this.deps.cluster.describeTopics([this.topic.name])
    const found = topics.find((topic) => topic.topicId === this.topic.topicId)
    if (found !== undefined) this.exists = found.partitions.length
    return this.exists
  }

  /** The cluster has so many partitions. Whoever sees it first takes up what was created behind Headgate's back. */
  noticed(count: number): void {
    this.exists = count
    const { state, log } = this.deps
    const topic = this.topic.view()?.topic
    if (topic === undefined || this.wish !== undefined || !state.mayAct()) return
    if (topic.proposal !== undefined || count <= knownCount(topic)) return
    const plan = makePlan(topic, this.topic.rule.order, 'external', count)
    if (plan.gates === 'cuts' && unsealed({ topic } as View).some((layout) => layout.gates === 'seal')) return
    log.info({ topic: topic.name, from: plan.from, to: count }, 'partitions were created behind Headgate’s back')
    void this.begin(plan, undefined)
  }

  private begin(plan: ChangePlan, creation: Creation | undefined): Promise<Outcome> {
    const { state, runtime } = this.deps
    const id = `${state.proxy}/${runtime.wallNow().toString(36)}-${this.wishes++}`
    return new Promise((resolve) => {
      const settle = (outcome: Outcome): void => {
        this.wish = undefined
        this.tell(plan, outcome)
        resolve(outcome)
      }
      const deadlineMs = runtime.now() + DECIDED_MS
      this.wish = { plan, id, creation, isCreating: false, seen: undefined, sentMs: -Infinity, deadlineMs, settle }
      this.follow()
    })
  }

  /** Appends the wish until it is read back, creates what it is to create, and says what became of it. */
  private follow(): void {
    const { wish } = this
    const view = this.topic.view()
    if (view !== undefined) this.followLive(view.topic)
    if (wish === undefined || view === undefined) return
    const outcome = fateOf(wish.plan, wish.id, wish.seen, view.topic)
    if (outcome !== undefined) return wish.settle(outcome)
    if (view.topic.proposal !== undefined) {
      wish.seen = view.topic.proposal
      return this.create(wish)
    }
    const { state, runtime } = this.deps
    const now = runtime.now()
    if (now - wish.sentMs < this.times.retryMs) return
    wish.sentMs = now
    const isAssigned = wish.creation?.isAssigned === true
    state.append(proposalOf(wish.plan, wish.id, state.proxy, this.topic.topicId, isAssigned))
  }

  private followLive(topic: TopicState): void {
    const { live } = this
    if (live === undefined) return
    const layout = layoutOf(topic, live.epoch)
    if (layout?.change !== 'shrink' || layout.isLive === true) {
      this.live = undefined
      return
    }
    const { state, runtime } = this.deps
    if (runtime.now() - live.sentMs < this.times.retryMs) return
    live.sentMs = runtime.now()
    state.append({ kind: 'announced', proxy: state.proxy, topicId: topic.topicId, epoch: live.epoch, live: true })
  }

  /** Whether it will still happen cannot be known without the state. */
  private giveUp(): void {
    const { wish } = this
    if (wish === undefined || this.deps.runtime.now() < wish.deadlineMs) return
    const why = this.deps.state.status().problem ?? 'the state log does not move'
    const message = `what became of the change of topic ${this.topic.name} to ${wish.plan.to} partitions is not known: ${why}`
    wish.settle(
      refuse('HG_STATE_UNAVAILABLE', message, `look at it later: headgate topics describe ${this.topic.name}`),
    )
  }

  /** The topic is no more, or another one has its name: nobody goes on with its changes. */
  deleted(): void {
    const { name } = this.topic
    this.live = undefined
    const message = `topic ${name} was deleted before its change to ${this.wish?.plan.to} partitions was decided`
    const fix = `nothing is left to change; a topic that was made again begins afresh: headgate topics describe ${name}`
    this.wish?.settle(refuse('HG_TOPIC_UNKNOWN', message, fix))
  }

  /** This proxy stops: what is in the log goes on without it. */
  stopped(): void {
    const { name } = this.topic
    const message = `this proxy stops; what becomes of the change of topic ${name} to ${this.wish?.plan.to} partitions is not known yet`
    const fix = `the other proxies go on with it, or abort it: headgate topics describe ${name}`
    this.wish?.settle(refuse('HG_STATE_UNAVAILABLE', message, fix))
  }

  private create({ creation, plan, ...wish }: Wish): void {
    const own = this.wish
    if (creation === undefined || wish.isCreating || own === undefined) return
    own.isCreating = true
    creation.create().then(
      () => this.observe(),
      (error: Error) => {
        if (creation.isAssigned) this.abort(own.id, error.message)
        // The leader creates them too: whoever comes second is told that they exist.
        else this.deps.log.debug({ topic: this.topic.name, to: plan.to }, `partitions not created: ${error.message}`)
      },
    )
  }

  private abort(proposal: string, reason: string): void {
    const { state } = this.deps
    if (!state.mayAct()) return
    state.append({ kind: 'aborted', proxy: state.proxy, topicId: this.topic.topicId, proposal, reason })
  }

  private reduce(event: CoordinatorEvent): void {
    const { runtime } = this.deps
    const now = { atMs: runtime.now(), wallMs: runtime.wallNow() }
    const [state, effects] = reduceCoordinator(this.state, { ...event, ...now })
    this.state = state
    for (const effect of effects) this.perform(effect)
  }

  private perform(effect: CoordinatorEffect): void {
    switch (effect.type) {
      case 'append':
        if (this.deps.state.mayAct()) this.deps.state.append(effect.record)
        break
      case 'create':
        this.createPartitions(effect.count)
        break
      case 'observe':
        this.observe()
        break
      case 'read-ends':
        this.readEnds(effect.what, effect.partitions)
        break
      case 'read-starts':
        this.readStarts(effect.partitions)
        break
    }
  }

  private createPartitions(count: number): void {
    const proposal = this.topic.view()?.topic.proposal
    if (this.isCreating || proposal === undefined) return
    if (proposal.isAssigned === true) {
      const asker = this.topic.view()?.fleet.members[proposal.proxy]
      if (asker?.expelledAt !== undefined)
        this.abort(proposal.id, 'the proxy that was to create the partitions on given brokers is gone')
      return
    }
    this.isCreating = true
    this.deps.cluster.createPartitions(this.topic.name, count).then(
      () => {
        this.isCreating = false
        this.observe()
      },
      (error: FinalError) => {
        this.isCreating = false
        this.refused(proposal.id, error)
      },
    )
  }

  /** Asks again as long as that may help; else the change ends, unless somebody else creates the partitions meanwhile. */
  private refused(proposal: string, error: FinalError): void {
    const now = this.deps.runtime.now()
    if (error.passes !== false) return
    if (this.refusal?.proposal !== proposal) this.refusal = { proposal, sinceMs: now }
    if (now - this.refusal.sinceMs < REFUSED_MS) return
    this.abort(proposal, error.message)
  }

  /** What is asked in the course of a change was refused: a proposed change ends, an open one waits for people. */
  private cannotAsk(error: FinalError): void {
    const topic = this.topic.view()?.topic
    if (error.passes !== false || topic === undefined) return
    if (topic.proposal !== undefined) return this.refused(topic.proposal.id, error)
    if (this.told === error.message || unsealed({ topic } as View).length === 0) return
    this.told = error.message
    this.deps.log.warn({ topic: topic.name }, `${error.message}; until then the change cannot be sealed`)
  }

  private observe(): void {
    if (this.isObserving) return
    this.isObserving = true
    const { cluster, log } = this.deps
    cluster.describeTopics([this.topic.name]).then(
      (topics) => {
        this.isObserving = false
        const found = topics.find((topic) => topic.topicId === this.topic.topicId)
        if (found === undefined) return
        const { partitions } = found
        this.exists = partitions.length
        const isLed = partitions.every(({ leader }) => leader >= 0)
        const leaderEpochs = Object.fromEntries(partitions.map(({ leaderEpoch }, index) => [index, leaderEpoch]))
        this.reduce({ type: 'observed', count: partitions.length, isLed, leaderEpochs })
      },
      (error: FinalError) => {
        this.isObserving = false
        log.debug({ topic: this.topic.name }, `cannot be described: ${error.message}`)
        this.cannotAsk(error)
      },
    )
  }

  private readEnds(what: string, partitions: readonly number[]): void {
    this.deps.cluster.endOffsets(this.topic.name, partitions).then(
      (ends) => this.reduce({ type: 'ends', what, ends }),
      // Asked again after `retryMs`.
      (error: FinalError) => {
        this.deps.log.debug({ topic: this.topic.name }, `no end offsets: ${error.message}`)
        this.cannotAsk(error)
      },
    )
  }

  private readStarts(partitions: readonly number[]): void {
    this.deps.cluster.startOffsets(this.topic.name, partitions).then(
      (starts) => this.reduce({ type: 'starts', starts }),
      (error: Error) => this.deps.log.debug({ topic: this.topic.name }, `no start offsets: ${error.message}`),
    )
  }

  /** What became of it otherwise is in the news of the topic. */
  private tell({ change, from, to }: ChangePlan, outcome: Outcome): void {
    if (outcome.kind !== 'refused') return
    const what = { topic: this.topic.name, change, from, to }
    this.deps.log[change === 'external' ? 'debug' : 'warn'](what, `the change was refused: ${outcome.message}`)
  }
}

/** Partitions that a layout or a change is known to have: more were created by somebody else. */
function knownCount(topic: TopicState): number {
  return Math.max(widestCount(topic), topic.proposal?.to ?? 0, topic.attempted ?? 0)
}
