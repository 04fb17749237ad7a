/** Proxies with nothing but their control side, over one state log and one cluster, in virtual time. */
import { LayoutControl } from '../../../../../src/features/layouts/control/layout-control.ts'
import { defaultTimes } from '../../../../../src/features/layouts/times.ts'
import type { LayoutTopic, LayoutTopics, TopicRule } from '../../../../../src/features/layouts/topic-rule.ts'
import { currentLayout, type TopicState } from '../../../../../src/state/topic-state.ts'
import { FakeCluster } from '../../../../support/fake-cluster.ts'
import { type FakeState, FakeStateLog } from '../../../../support/fake-state.ts'
import { RecordingLog } from '../../../../support/telemetry.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

export const plainRule: TopicRule = {
  topic: /^orders$/,
  partitioner: 'auto',
  order: 'key',
  sealAfterMs: undefined,
  goneAfterMs: 120_000,
  late: 'accept',
  stateLoss: 'hold',
}

const timesOf = ({ sealAfterMs, goneAfterMs }: TopicRule) => ({ ...defaultTimes, sealAfterMs, goneAfterMs })

export class TestProxy {
  readonly state: FakeState
  readonly control: LayoutControl
  readonly log = new RecordingLog()
  /** Says `ready` and votes, as the guard does where nobody writes. */
  isReady = true
  votes = true
  /** Those that the cluster has. */
  readonly topics: LayoutTopic[] = []
  private readonly appended = new Set<string>()

  constructor(fleet: Fleet, host: string) {
    const { runtime, cluster } = fleet
    this.state = fleet.shared.join(host)
    const topic: LayoutTopic = {
      name: 'orders',
      topicId: 'T',
      rule: fleet.rule,
      count: 0,
      view: () => (this.state.mayAct() ? this.state.view('T') : undefined),
    }
    this.topics.push(topic)
    const topics: LayoutTopics = {
      isLoaded: true,
      mayBeRuled: () => false,
      onNamed: () => undefined,
      rule: (name) => (name === topic.name ? topic.rule : undefined),
      find: (name, topicId) => this.topics.find((one) => name === one.name || topicId === one.topicId),
      all: () => this.topics,
    }
    this.control = new LayoutControl(topics, { runtime, state: this.state, cluster, log: this.log, timesOf })
    this.state.onChange(() => this.beGuard())
    this.look(fleet)
  }

  get topic(): TopicState {
    const topic = this.state.view('T')?.topic
    if (topic === undefined) throw new Error('the topic is not known yet')
    return topic
  }

  get count(): number {
    return currentLayout(this.topic).count
  }

  get coordinator() {
    const found = this.control.find('orders')
    if (found === undefined) throw new Error('no coordinator')
    return found
  }

  ask(change: 'expand' | 'shrink', to: number, any = false) {
    const outcome = this.coordinator.change({ change, to, any, by: 'the test' })
    this.control.wake()
    return outcome
  }

  /** What the topics of the feature see now and then. */
  private look(fleet: Fleet): void {
    fleet.runtime.timer(30_000, () => {
      this.control.noticed('orders', 'T', fleet.cluster.topics.get('orders')?.partitions.length ?? 0)
      this.look(fleet)
    })
  }

  private beGuard(): void {
    const topic = this.state.view('T')?.topic
    const { proxy } = this.state
    if (topic === undefined || !this.state.mayAct()) return
    const { proposal } = topic
    if (this.isReady && proposal?.preparingAt !== undefined && proposal.ready[proxy] === undefined)
      this.once(`ready ${proposal.id}`, { kind: 'ready', proxy, topicId: 'T', proposal: proposal.id })
    for (const { epoch, change, votes } of topic.layouts) {
      if (!this.votes || change === 'met' || votes[proxy] !== undefined) continue
      this.once(`vote ${epoch}`, { kind: 'vote', proxy, topicId: 'T', epoch, ballot: 1, instances: [], ends: {} })
    }
  }

  private once(what: string, record: Parameters<FakeState['append']>[0]): void {
    if (this.appended.has(what)) return
    this.appended.add(what)
    this.state.append(record)
  }
}

export class Fleet {
  readonly runtime = new VirtualRuntime()
  readonly cluster = new FakeCluster()
  readonly shared = new FakeStateLog(this.runtime)
  readonly proxies: TestProxy[] = []
  readonly rule: TopicRule

  constructor(rule: Partial<TopicRule> = {}) {
    this.rule = { ...plainRule, ...rule }
    this.cluster.topic('orders', 'T', 3)
  }

  /** Proxies that have met the topic with its three partitions. */
  static async of(size: number, rule: Partial<TopicRule> = {}): Promise<Fleet> {
    const fleet = new Fleet(rule)
    for (let i = 0; i < size; i++) fleet.proxies.push(new TestProxy(fleet, `p${i}`))
    await fleet.until(() => fleet.proxies.every(({ state }) => state.mayAct()))
    const [first] = fleet.proxies
    if (first !== undefined)
      first.state.append({ kind: 'topic', proxy: first.state.proxy, topicId: 'T', name: 'orders', count: 3 })
    await fleet.until(() => fleet.proxies.every(({ state }) => state.view('T') !== undefined))
    return fleet
  }

  proxy(index: number): TestProxy {
    const found = this.proxies[index]
    if (found === undefined) throw new RangeError(`no proxy ${index}`)
    return found
  }

  async until(done: () => boolean, forMs?: number): Promise<boolean> {
    return this.runtime.run(done, forMs)
  }

  /** Waits for a promise in virtual time. */
  async settled<T>(promise: Promise<T>, forMs?: number): Promise<T> {
    let isDone = false
    void promise.finally(() => (isDone = true))
    await this.until(() => isDone, forMs)
    if (!isDone) throw new Error('not settled in time')
    return promise
  }
}
