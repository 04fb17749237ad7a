import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { installShutdown } from '../../../src/lifecycle/shutdown.ts'

/** A target that counts calls, with `connections` clients, and a shutdown on it that is not wired to the process. */
function setUp(options: { connections?: number; delayMs?: number; graceMs?: number; drain?: () => Promise<void> }) {
  const calls: string[] = []
  const exits: number[] = []
  const signals = new EventEmitter()
  const target = {
    connections: options.connections ?? 0,
    activeConnections: () => target.connections,
    drain: async (deadlineMs: number) => {
      calls.push(`drain ${deadlineMs > 0}`)
      await options.drain?.()
    },
    close: async () => void calls.push('close'),
  }
  const nothing = () => undefined
  const shutdown = installShutdown(target, {
    delayMs: options.delayMs ?? 0,
    graceMs: options.graceMs ?? 60_000,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    signals,
    exit: (code) => void exits.push(code),
  })
  return { calls, exits, signals, target, shutdown }
}

test('idle: drains and closes at once, whatever the delay', async () => {
  const { calls, exits, signals, shutdown } = setUp({ delayMs: 1_000_000 })
  assert.equal(shutdown.started, false)
  signals.emit('SIGTERM', 'SIGTERM')
  assert.equal(shutdown.started, true)
  assert.equal(await shutdown.done, 0)
  assert.deepEqual([calls, exits], [['drain true', 'close'], []])
})

test('busy: does not drain before the delay is over or the last client has gone', async () => {
  const { calls, signals, target, shutdown } = setUp({ connections: 1, delayMs: 1_000_000 })
  signals.emit('SIGTERM', 'SIGTERM')
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(calls, [])
  target.connections = 0
  assert.equal(await shutdown.done, 0)
  assert.deepEqual(calls, ['drain true', 'close'])
})

test('Ctrl-C skips the delay', async () => {
  const { calls, signals, shutdown } = setUp({ connections: 1, delayMs: 1_000_000 })
  signals.emit('SIGINT', 'SIGINT')
  assert.equal(await shutdown.done, 0)
  assert.deepEqual(calls, ['drain true', 'close'])
})

test('a second signal exits at once with the number of the signal', async () => {
  let release: () => void = () => undefined
  const drain = () => new Promise<void>((resolve) => (release = resolve))
  const { exits, signals, shutdown } = setUp({ connections: 1, drain })
  signals.emit('SIGTERM', 'SIGTERM')
  signals.emit('SIGTERM', 'SIGTERM')
  assert.deepEqual(exits, [], 'an echo of the first')
  signals.emit('SIGINT', 'SIGINT')
  assert.deepEqual(exits, [130])
  await new Promise((resolve) => setImmediate(resolve))
  release()
  await shutdown.done
})

test('a drain that hangs is ended by the grace period', async () => {
  let tell: (code: number) => void = () => undefined
  const exited = new Promise<number>((resolve) => (tell = resolve))
  const signals = new EventEmitter()
  const nothing = () => undefined
  installShutdown(
    { activeConnections: () => 1, drain: () => new Promise(nothing), close: async () => undefined },
    {
      delayMs: 0,
      graceMs: 20,
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
      signals,
      exit: tell,
    },
  )
  signals.emit('SIGTERM', 'SIGTERM')
  assert.equal(await exited, 1)
})

test('a failing drain still ends', async () => {
  const { signals, shutdown } = setUp({ drain: () => Promise.reject(new Error('no')) })
  signals.emit('SIGTERM', 'SIGTERM')
  assert.equal(await shutdown.done, 0)
})
