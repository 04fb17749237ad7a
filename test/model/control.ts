/** Changes of the topic at one proxy: what admins ask for, what others create, and the coordinator that carries it out. */
import { type ChangePlan, makePlan } from '../../src/features/layouts/control/change-plan.ts'
import { fateOf, proposalOf } from '../../src/features/layouts/control/wish.ts'
import {
  type CoordinatorEvent,
  type CoordinatorState,
  newCoordinator,
  reduceCoordinator,
} from '../../src/features/layouts/expansion.ts'
import type { ChangeName } from '../../src/state/record.ts'
import { mayPropose } from '../../src/state/topic-reducer.ts'
import { currentLayout, type Proposal, type TopicState, widestCount } from '../../src/state/topic-state.ts'
import type { View } from '../../src/state/view.ts'
import type { Model } from './model.ts'
import { distort } from './mutations.ts'
import { type Proxy, topicId } from './proxy.ts'

interface Wish {
  plan: ChangePlan
  id: string
  seen: Proposal | undefined
  sentMs: number
}

export class Control {
  readonly #proxy: Proxy
  readonly #model: Model
  #coordinator: CoordinatorState
  #wish: Wish | undefined

  constructor(proxy: Proxy) {
    this.#proxy = proxy
    this.#model = proxy.model
    this.#coordinator = newCoordinator(proxy.id, proxy.model.times)
  }

  get isLeader(): boolean {
    return this.#coordinator.isLeader
  }

  setLeader(isLeader: boolean): void {
    this.#toCoordinator({ type: 'leader', isLeader })
  }

  feed(view: View): void {
    this.#toCoordinator({ type: 'view', view })
  }

  tick(view: View): void {
    this.#followWish(view)
    if (this.isLeader && this.#model.world.random.chance(0.05)) this.#notice(view)
    this.#toCoordinator({ type: 'tick' })
  }

  /** Partitions that somebody else created. */
  #notice({ topic }: View): void {
    const exists = this.#model.broker.partitions.length
    const known = Math.max(widestCount(topic), topic.proposal?.to ?? 0, topic.attempted ?? 0)
    if (exists > known) this.#want(topic, 'external', exists)
  }

  wish(to: number): void {
    const { view } = this.#proxy
    if (view === undefined || !this.#proxy.mayAct) return
    this.#want(view.topic, to > currentLayout(view.topic).count ? 'expand' : 'shrink', to)
    this.#followWish(view)
  }

  #want(topic: TopicState, change: ChangeName, to: number): void {
    if (this.#wish !== undefined) return
    const gates = this.#model.gatesFor(topic, to)
    if (!mayPropose(topic, to, gates)) return
    const plan = { ...makePlan(topic, this.#model.order, change, to), gates }
    this.#wish = { plan, id: this.#proxy.nextId(), seen: undefined, sentMs: -Infinity }
  }

  #followWish(view: View): void {
    const wish = this.#wish
    if (wish === undefined) return
    const outcome = fateOf(wish.plan, wish.id, wish.seen, view.topic)
    if (outcome !== undefined) {
      this.#wish = undefined
      return this.#model.world.count(`wish ${outcome.kind}`)
    }
    wish.seen = view.topic.proposal ?? wish.seen
    if (wish.seen !== undefined || this.#model.world.now - wish.sentMs < this.#model.times.retryMs) return
    wish.sentMs = this.#model.world.now
    this.#proxy.replica.append(proposalOf(wish.plan, wish.id, this.#proxy.id, topicId, false))
  }

  #toCoordinator(event: CoordinatorEvent): void {
    const [state, effects] = reduceCoordinator(this.#coordinator, { ...event, atMs: this.#model.world.now })
    this.#coordinator = state
    const { broker } = this.#model
    for (const effect of effects) {
      switch (effect.type) {
        case 'append':
          if (this.#proxy.mayAct) this.#proxy.replica.append(effect.record)
          break
        case 'create':
          this.#proxy.rpc(
            () => broker.create(effect.count),
            () => undefined,
          )
          break
        case 'observe':
          this.#proxy.rpc(
            () => ({ count: broker.partitions.length, isLed: broker.leaderless.size === 0 }),
            (seen) => this.#toCoordinator({ type: 'observed', ...seen, leaderEpochs: {} }),
          )
          break
        case 'read-starts':
          this.#proxy.rpc(
            () =>
              Object.fromEntries(effect.partitions.map((p) => [p, distort.logStart(this.#model, broker.logStart(p))])),
            (starts) => this.#toCoordinator({ type: 'starts', starts }),
          )
          break
        case 'read-ends': {
          const { what } = effect
          const early = distort.earlyEnds(this.#model, what)
          if (early !== undefined) this.#toCoordinator({ type: 'ends', what, ends: early })
          else this.#proxy.readEnds(effect.partitions, (ends) => this.#toCoordinator({ type: 'ends', what, ends }))
          break
        }
      }
    }
  }
}
