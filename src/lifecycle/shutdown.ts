/**
 * From SIGTERM to the end: go on accepting for `delayMs` while not ready (load balancers take that long to look away),
 * then drain, then close, all within `graceMs`. Idle skips the delay, SIGINT too (nobody balances a terminal), and a
 * second signal ends the process at once. The same signal again at the same moment is an echo: npm and npx pass on what
 * the terminal has already sent to everybody.
 */
import type { Log } from '../telemetry/log.ts'

export interface ShutdownTarget {
  /** Client connections open now. */
  activeConnections(): number
  /** Answers parked polls, finishes what is in flight, closes broker by broker; resolves by the deadline at the latest. */
  drain(deadlineMs: number): Promise<void>
  close(): Promise<void>
}

export interface ShutdownOptions {
  readonly delayMs: number
  readonly graceMs: number
  readonly log: Log
  /** `process`, or a stand-in. */
  readonly signals: NodeJS.EventEmitter
  /** Ends the process at once. */
  readonly exit: (code: number) => void
}

export interface Shutdown {
  /** A signal has arrived: not ready any more. */
  readonly started: boolean
  /** Resolves with the exit code when all is closed. */
  readonly done: Promise<number>
}

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const
const pollMs = 50
const echoMs = 200
/** Left over after the drain for closing sockets and writing the log. */
const closeMs = 500

export function installShutdown(target: ShutdownTarget, options: ShutdownOptions): Shutdown {
  const { log, signals, exit } = options
  let finish: (code: number) => void
  const state = {
    started: false,
    done: new Promise<number>((resolve) => {
      finish = resolve
    }),
  }
  const first = { signal: '', atMs: 0 }
  const onSignal = (signal: keyof typeof signalNumbers) => {
    if (state.started) {
      if (signal === first.signal && performance.now() - first.atMs < echoMs) return
      log.warn({ signal }, 'second signal: exiting at once')
      exit(128 + signalNumbers[signal])
      return
    }
    state.started = true
    first.signal = signal
    first.atMs = performance.now()
    const watchdog = setTimeout(() => {
      log.error({ graceMs: options.graceMs }, 'shutdown took longer than shutdown.grace: exiting')
      exit(1)
    }, options.graceMs)
    stop(target, options, signal)
      .catch((error: unknown) => log.error({ err: error }, 'shutdown failed'))
      .finally(() => {
        clearTimeout(watchdog)
        finish(0)
      })
  }
  for (const signal of Object.keys(signalNumbers)) signals.on(signal, onSignal)
  return state
}

async function stop(target: ShutdownTarget, options: ShutdownOptions, signal: string): Promise<void> {
  const { log, graceMs } = options
  const startedAt = performance.now()
  const connections = target.activeConnections()
  const delayMs = signal === 'SIGINT' ? 0 : options.delayMs
  log.info({ signal, connections, delayMs, graceMs }, connections === 0 ? 'stopping: idle' : 'stopping')
  while (target.activeConnections() > 0 && performance.now() - startedAt < delayMs) await pause(pollMs)
  const left = graceMs - (performance.now() - startedAt)
  await target.drain(Math.max(0, left - Math.min(closeMs, graceMs / 4)))
  await target.close()
  log.info({ seconds: Math.round(performance.now() - startedAt) / 1000 }, 'stopped')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
