/**
 * Drives a client program of test/clients: commands in, events out. Invariant: every command ends, by its `end` event, by
 * the program's exit or by the deadline, and an error shows what the program printed last.
 */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { keep } from '../../scripts/kafka/keeper.ts'
import type { Program } from '../../scripts/setup/toolchain.ts'

export type Partition = readonly [topic: string, partition: number]

/** An event of a client program; which fields it has is said in test/clients/README.md. */
export interface ClientEvent {
  readonly id: string
  readonly event: string
  readonly at: number
  readonly topic?: string
  readonly partition?: number
  readonly offset?: number
  readonly key?: string | null
  readonly producer?: string
  readonly sequence?: number
  readonly transaction?: string
  readonly outcome?: string
  readonly valueHash?: string | null
  readonly headersHash?: string
  readonly timestamp?: number
  readonly member?: string
  readonly group?: string
  readonly position?: number
  readonly end?: number
  readonly lag?: number
  readonly partitions?: readonly Partition[]
  readonly op?: string
  readonly result?: unknown
  readonly code?: number | string
  readonly message?: string
  readonly ok?: boolean
  readonly count?: number
}

export interface Command {
  readonly cmd: 'produce' | 'consume' | 'admin'
  readonly bootstrap: string
  readonly [field: string]: unknown
}

/** What takes seconds on an idle machine; nothing waits this long unless it hangs. */
const deadlineMs = 120_000

/** One running command: its events so far, and its end. */
export class Run {
  readonly events: ClientEvent[] = []
  readonly #program: ClientProgram
  readonly id: string
  readonly #watchers = new Set<() => void>()
  #failure: Error | undefined

  constructor(program: ClientProgram, id: string) {
    this.#program = program
    this.id = id
  }

  /** Called by the program for each event. */
  push(event: ClientEvent): void {
    this.events.push(event)
  }

  /** Called by the program after an event of any of its commands: what is waited for may depend on several. */
  wake(): void {
    for (const check of [...this.#watchers]) check()
  }

  /** Called by the program when it ends before the command does. */
  fail(error: Error): void {
    this.#failure = error
    this.wake()
  }

  /** Waits until `done(events)`, asked after every event of the program; rejects when the command ended without it, or after the deadline. */
  until(what: string, done: (events: readonly ClientEvent[]) => boolean): Promise<readonly ClientEvent[]> {
    return new Promise((resolve, reject) => {
      const finish = (error?: Error) => {
        clearTimeout(timer)
        this.#watchers.delete(check)
        if (error === undefined) resolve(this.events)
        else reject(error)
      }
      const check = () => {
        if (done(this.events)) finish()
        else if (this.#failure !== undefined) finish(this.#failure)
        else if (this.events.at(-1)?.event === 'end') finish(new Error(`${this.describe()}: ended before ${what}`))
      }
      const timer = setTimeout(
        () => finish(new Error(`${this.describe()}: no ${what} in ${deadlineMs} ms`)),
        deadlineMs,
      )
      this.#watchers.add(check)
      check()
    })
  }

  /** All events, once the command has ended. */
  ended(): Promise<readonly ClientEvent[]> {
    return this.until('its end', (events) => events.at(-1)?.event === 'end')
  }

  /** Asks the command to end gracefully and waits for it. */
  stop(): Promise<readonly ClientEvent[]> {
    if (this.events.at(-1)?.event !== 'end') this.#program.write({ cmd: 'stop', target: this.id })
    return this.ended()
  }

  /** What it saw last and what its program printed, for error messages. */
  describe(): string {
    const last = this.events.slice(-5).map((event) => JSON.stringify(event))
    return [`${this.#program.name} ${this.id}`, ...last, this.#program.errors()].join('\n')
  }
}

/** A client program that runs. */
export class ClientProgram {
  readonly name: string
  readonly #child: ChildProcess
  readonly #runs = new Map<string, Run>()
  readonly #exited: Promise<void>
  #stderr = ''
  #count = 0

  constructor(name: string, program: Program) {
    this.name = name
    const child = keep(program.command, program.args, { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
    lines.on('line', (line) => this.#accept(line))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr = (this.#stderr + text).slice(-8000)))
    child.stdin?.on('error', () => {})
    this.#exited = new Promise((resolve) => {
      const gone = (how: string) => {
        for (const run of this.#runs.values()) run.fail(new Error(`${name} ended (${how})\n${this.errors()}`))
        resolve()
      }
      child.on('error', (error) => gone(error.message))
      child.on('close', (code, signal) => gone(String(signal ?? code)))
    })
  }

  /** Process id. */
  get pid(): number | undefined {
    return this.#child.pid
  }

  /** What the program wrote to standard error last. */
  errors(): string {
    return this.#stderr.trimEnd().split('\n').slice(-12).join('\n')
  }

  /** Starts a command. */
  start(command: Command): Run {
    const id = `${command.cmd}-${++this.#count}`
    const run = new Run(this, id)
    this.#runs.set(id, run)
    this.write({ id, ...command })
    return run
  }

  /** Runs a command to its end. */
  run(command: Command): Promise<readonly ClientEvent[]> {
    return this.start(command).ended()
  }

  write(command: Record<string, unknown>): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`)
  }

  /** Ends the program's input and waits for its exit; killed if it does not come within 20 s. */
  async close(): Promise<void> {
    this.#child.stdin?.end()
    const patience = setTimeout(() => this.#child.kill('SIGKILL'), 20_000)
    await this.#exited
    clearTimeout(patience)
  }

  /** SIGKILL: an application that crashes. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #accept(line: string): void {
    if (!line.startsWith('{')) {
      this.#stderr += `${line}\n`
      return
    }
    const event = JSON.parse(line) as ClientEvent
    this.#runs.get(event.id)?.push(event)
    for (const run of this.#runs.values()) run.wake()
  }
}

/** Polls what several programs saw, until `done`: a look at all events per event would cost more than the records. */
export async function watching(runs: readonly Run[], what: string, done: () => boolean): Promise<void> {
  const deadline = Date.now() + deadlineMs
  while (!done()) {
    const ended = runs.find((run) => run.events.at(-1)?.event === 'end')
    if (ended !== undefined || Date.now() > deadline) {
      const reason = ended === undefined ? `not within ${deadlineMs} ms` : `${ended.id} ended`
      throw new Error(`no ${what}: ${reason}\n${runs.map((run) => run.describe()).join('\n')}`)
    }
    await delay(100)
  }
}
