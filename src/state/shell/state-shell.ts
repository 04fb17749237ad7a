/**
 * The state log and this proxy's place in the fleet, as features see them (`State`): a thin shell around the reducers.
 * It reads the log, appends to it, belongs to the group, and begins a new life under a new id when it was expelled.
 *
 * Invariants: `view` shows confirmed reads only; nothing that goes wrong here throws into a feature: the lease lapses,
 * `status` says why, and it is tried again for ever.
 */
import { hostname } from 'node:os'
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { Log } from '../../telemetry/log.ts'
import { liveAt } from '../fleet.ts'
import { groupId } from '../group-protocol.ts'
import type { Moment } from '../lease.ts'
import { emptyLog, fleetOf, type LogState, topicOf } from '../log-reducer.ts'
import type { ProxyId, StateRecord } from '../record.ts'
import type { Departure, State, StateStatus } from '../state.ts'
import type { View } from '../view.ts'
import { Appender } from './appender.ts'
import { Announcer } from './announcer.ts'
import { Life } from './life.ts'
import { LogReader } from './log-reader.ts'
import { Problems } from './problems.ts'
import { Tidier } from './tidier.ts'

export const stateTopic = '__headgate_state'

export interface StateShellOptions {
  readonly runtime: Runtime
  readonly cluster: ClusterClient
  readonly log: Log
  /** Where the admin port of this proxy answers, for people. */
  readonly host: string
  /** Digest of this proxy's rules, which all proxies of the fleet are to share. Default: it is not said. */
  readonly rules?: string
  /** Begins the proxy's id. Default: the host's name. */
  readonly name?: string
  /** How long a proxy may be silent before the others expel it; it acts on half of that. Default 10 s. */
  readonly sessionMs?: number
  /** Default `__headgate_state`. */
  readonly topic?: string
  /** Default `__headgate`. */
  readonly group?: string
  /** Entries of a topic after which it gets a snapshot. Default 32. */
  readonly tailLength?: number
  /** How long an expelled proxy is remembered at least: longer than any topic waits for one. Default 1 h. */
  readonly rememberMs?: number
  /** Whether the cluster has had no such topic for so long that the log may forget it. Default: none. */
  readonly isGone?: (topicId: string) => boolean
}

const defaultSessionMs = 10_000
/** How long the broker holds a read at the log's end. */
const readWaitMs = 500
const defaultTailLength = 32
const defaultRememberMs = 3_600_000
const tidyMs = 2000
const retryMs = 1000
const idDigits = 8
/** Less than what a shutdown leaves for closing. */
const stopMs = 400

export class StateShell implements State {
  readonly #options: StateShellOptions
  readonly #sessionMs: number
  readonly #problems: Problems
  readonly #announcer: Announcer
  readonly #appender: Appender
  readonly #reader: LogReader
  readonly #tidier: Tidier
  #life: Life
  #log: LogState = emptyLog()
  #wasRead = false
  #wasReady = false
  #isStopped = false
  #timer: Timer | undefined
  readonly #listeners: (() => void)[] = []

  constructor(options: StateShellOptions) {
    const { runtime, cluster, log, topic = stateTopic, sessionMs = defaultSessionMs } = options
    const { tailLength = defaultTailLength, rememberMs = defaultRememberMs } = options
    this.#options = options
    this.#sessionMs = sessionMs
    this.#problems = new Problems(log)
    this.#announcer = new Announcer(log)
    this.#tidier = new Tidier({ runtime, tailLength, rememberMs, intervalMs: tidyMs, isGone: options.isGone })
    // a read that is not answered must not cost the lease: there is time for another one on a new connection
    const timeoutMs = sessionMs / 4
    const onProblem = (source: 'log' | 'appends') => (problem: string | undefined) => this.#note(source, problem)
    this.#appender = new Appender({
      runtime,
      cluster,
      topic,
      timeoutMs: sessionMs / 2,
      onProblem: onProblem('appends'),
    })
    this.#reader = new LogReader({
      runtime,
      cluster,
      log,
      topic,
      maxWaitMs: Math.min(readWaitMs, sessionMs / 10),
      timeoutMs,
      onRead: (state, sent) => this.#read(state, sent),
      onReset: () => this.#reset(),
      onProblem: onProblem('log'),
    })
    this.#life = this.#newLife()
  }

  start(): void {
    this.#reader.start()
    this.#life.start()
    this.#tick()
  }

  /**
   * Leaves the fleet; to be called when no request of a guarded topic is under way any more. Waits for the cluster no
   * longer than a moment: the others find out by themselves, if later.
   * @param departure left out where it is not known who may still send what
   */
  async stop(departure?: Departure): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    const { runtime } = this.#options
    let timer: Timer | undefined
    const bound = new Promise<void>((resolve) => {
      timer = runtime.timer(stopMs, resolve)
    })
    await Promise.race([this.#life.leave(departure), bound])
    timer?.cancel()
    this.#reader.stop()
  }

  get proxy(): ProxyId {
    return this.#life.proxy
  }

  view(topicId: string): View | undefined {
    const topic = topicOf(this.#log, topicId)
    return topic === undefined ? undefined : { topic, fleet: fleetOf(this.#log), position: this.#log.position }
  }

  topicIds(): readonly string[] {
    return Object.keys(this.#log.topics)
  }

  mayAct(): boolean {
    return this.#life.mayAct()
  }

  isLeader(): boolean {
    return this.#life.isLeader()
  }

  append(record: StateRecord): void {
    this.#life.append(record)
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  status(): StateStatus {
    const isReady = this.mayAct()
    const fleet = fleetOf(this.#log)
    return {
      condition: isReady ? 'ready' : this.#wasReady ? 'lost' : 'loading',
      problem: isReady ? undefined : (this.#problems.first ?? this.#waitsFor()),
      proxy: this.proxy,
      leader: this.#life.leader,
      proxies: liveAt(fleet, this.#log.position).map((proxy) => {
        const { host = '', rules } = fleet.members[proxy] ?? {}
        return { proxy, host, rules }
      }),
    }
  }

  /** What metrics are made of, besides `status`. */
  counts(): { position: number; appended: number; dropped: number; problems: ReadonlySet<string> } {
    const { appendedTotal: appended, droppedTotal: dropped } = this.#appender
    return { position: this.#log.position, appended, dropped, problems: this.#problems.sources }
  }

  #waitsFor(): string {
    if (!this.#wasRead) return 'the state topic is being read'
    if (this.#life.leader === undefined) return `joining the group ${this.#options.group ?? groupId}`
    return 'waiting until the registration, a heartbeat and a read of the state topic are confirmed'
  }

  #newLife(): Life {
    const { runtime, cluster, host, rules, name = hostname(), group = groupId } = this.#options
    const random = runtime
      .random(2 ** 32)
      .toString(16)
      .padStart(idDigits, '0')
    return new Life({
      runtime,
      cluster,
      appender: this.#appender,
      proxy: `${name.replace(/[^\w.-]/g, '-')}-${random}`,
      host,
      rules,
      groupId: group,
      sessionMs: this.#sessionMs,
      heartbeatMs: this.#sessionMs / 10,
      timeoutMs: this.#sessionMs / 4,
      retryMs,
      tidier: this.#tidier,
      onChange: () => this.#look(),
      onExpelled: () => {
        this.#options.log.warn({ proxy: this.proxy }, 'this proxy was expelled from the fleet: it begins anew')
        this.#beginAnew()
      },
      onProblem: (problem) => this.#note('group', problem),
    })
  }

  #beginAnew(): void {
    this.#life.end()
    if (this.#isStopped) return
    this.#appender.clear()
    this.#life = this.#newLife()
    this.#life.start()
    this.#tell()
  }

  #read(log: LogState, sent: Moment): void {
    if (this.#isStopped) return
    const before = this.#log
    this.#log = log
    if (this.#wasRead) this.#announcer.fleet(fleetOf(before), fleetOf(log))
    this.#wasRead = true
    this.#life.read(log, sent)
    if (log.position !== before.position) this.#tell()
  }

  #reset(): void {
    if (this.#isStopped) return
    this.#log = emptyLog()
    this.#wasRead = false
    this.#wasReady = false
    this.#beginAnew()
  }

  #tick(): void {
    this.#life.tick()
    this.#look()
    this.#timer = this.#options.runtime.timer(this.#sessionMs / 40, () => this.#tick())
  }

  #note(source: 'log' | 'appends' | 'group', problem: string | undefined): void {
    if (!this.#isStopped) this.#problems.note(source, problem)
  }

  /** Looks whether lease or leadership changed. */
  #look(): void {
    if (this.#isStopped) return
    this.#wasReady ||= this.mayAct()
    if (this.#announcer.look(this.status(), this.isLeader())) this.#tell()
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      try {
        listener()
      } catch (error) {
        this.#options.log.error({ err: error }, 'a feature failed on news of the state')
      }
    }
  }
}
