/**
 * The state log in memory, for shells that need a `State`: records go through their real encoding and the real reducers,
 * for as many proxies as a test wants, on any runtime. Nothing is lost or compacted here (test/model does that); a test
 * says when a lease lapses, a proxy is cut off or expelled.
 */
import { applyEntry, emptyLog, fleetOf, type LogEntry, type LogState, topicOf } from '../../src/state/log-reducer.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { decodeRecord, encodeRecord, keyOf } from '../../src/state/records.ts'
import type { State, StateStatus } from '../../src/state/state.ts'
import type { View } from '../../src/state/view.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'

export interface FakeStateOptions {
  /** From `append` to the log, and from the log to a reader. */
  readonly delayMs?: number
}

export class FakeStateLog {
  readonly runtime: Runtime
  readonly delayMs: number
  readonly entries: LogEntry[] = []
  readonly states: FakeState[] = []
  private ids = 0

  constructor(runtime: Runtime, options: FakeStateOptions = {}) {
    this.runtime = runtime
    this.delayMs = options.delayMs ?? 5
  }

  /** Another proxy; it registers itself at once. */
  join(host = 'host'): FakeState {
    const state = new FakeState(this, host)
    this.states.push(state)
    return state
  }

  /** The records of one kind, in log order. */
  records<K extends StateRecord['kind']>(kind: K): Extract<StateRecord, { kind: K }>[] {
    return this.entries.flatMap(({ record }) => (record?.kind === kind ? [record as never] : []))
  }

  append(record: StateRecord): void {
    const bytes = encodeRecord(record)
    const key = keyOf(record, `${record.proxy}:${this.ids++}`)
    this.runtime.timer(this.delayMs, () => {
      const offset = this.entries.length
      this.entries.push({ offset, atMs: this.runtime.wallNow(), key, record: decodeRecord(bytes) })
      for (const state of this.states) state.catchUpLater()
    })
  }
}

export class FakeState implements State {
  proxy: string
  /** The lease holds as far as clocks are concerned; see `lapse`. */
  private holds = true
  private cutOff = false
  private log: LogState = emptyLog()
  private lives = 1
  private reading = false
  private readonly shared: FakeStateLog
  private readonly host: string
  private readonly listeners: (() => void)[] = []

  constructor(shared: FakeStateLog, host: string) {
    this.shared = shared
    this.host = host
    this.proxy = this.nextId()
    this.append({ kind: 'register', proxy: this.proxy, host })
  }

  view(topicId: string): View | undefined {
    const topic = topicOf(this.log, topicId)
    return topic === undefined ? undefined : { topic, fleet: fleetOf(this.log), position: this.log.position }
  }

  topicIds(): readonly string[] {
    return Object.keys(this.log.topics)
  }

  mayAct(): boolean {
    const member = fleetOf(this.log).members[this.proxy]
    return this.holds && !this.cutOff && member !== undefined && member.expelledAt === undefined
  }

  isLeader(): boolean {
    return this.leader === this.proxy && this.mayAct()
  }

  append(record: StateRecord): void {
    if (!this.cutOff) this.shared.append(record)
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  status(): StateStatus {
    const members = Object.entries(fleetOf(this.log).members).filter(([, member]) => member.expelledAt === undefined)
    return {
      condition: this.mayAct() ? 'ready' : this.log.position === 0 ? 'loading' : 'lost',
      problem: this.mayAct() ? undefined : 'the test says so',
      proxy: this.proxy,
      leader: this.leader,
      proxies: members.map(([proxy, { host }]) => ({ proxy, host })),
    }
  }

  /** The lease ends, or holds again; reading goes on meanwhile. */
  lapse(): void {
    this.holds = false
    this.changed()
  }

  renew(): void {
    this.holds = true
    this.changed()
  }

  /** Nothing is appended or read, and the lease is lost, until `reconnect`. */
  disconnect(): void {
    this.cutOff = true
    this.changed()
  }

  reconnect(): void {
    this.cutOff = false
    this.catchUp()
    this.changed()
  }

  /** The state topic was deleted and made anew: for the only proxy there is. */
  startAfresh(): void {
    this.shared.entries.length = 0
    this.log = emptyLog()
    this.proxy = this.nextId()
    this.append({ kind: 'register', proxy: this.proxy, host: this.host })
    this.changed()
  }

  /** Another proxy puts this one out; it comes back under another id when it reads that. */
  expel(): void {
    this.shared.append({ kind: 'expel', proxy: 'test', expelled: this.proxy })
  }

  catchUpLater(): void {
    if (this.reading) return
    this.reading = true
    this.shared.runtime.timer(this.shared.delayMs, () => {
      this.reading = false
      this.catchUp()
    })
  }

  private catchUp(): void {
    if (this.cutOff || this.log.position === this.shared.entries.length) return
    for (const entry of this.shared.entries.slice(this.log.position)) this.log = applyEntry(this.log, entry)
    if (fleetOf(this.log).members[this.proxy]?.expelledAt !== undefined) {
      this.proxy = this.nextId()
      this.append({ kind: 'register', proxy: this.proxy, host: this.host })
    }
    this.changed()
  }

  private get leader(): string | undefined {
    return Object.entries(fleetOf(this.log).members).find(([, member]) => member.expelledAt === undefined)?.[0]
  }

  private nextId(): string {
    return `${this.host}-${this.shared.states.length + 1}.${this.lives++}`
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
  }
}
