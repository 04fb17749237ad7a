/** Virtual time and the virtual network: order, back-pressure, ends, cuts, half-open links, pauses and kills. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Socket, SocketHandler } from '../../../src/runtime/socket.ts'
import { Clock } from '../../simulation/kernel/clock.ts'
import { Network } from '../../simulation/kernel/network.ts'
import { Random } from '../../simulation/kernel/random.ts'

class Peer implements SocketHandler {
  readonly log: string[] = []
  text = ''
  socket: Socket | undefined
  readonly #space = Buffer.alloc(7)

  onConnect(): void {
    this.log.push('connect')
    this.socket?.resume()
  }
  buffer(): Uint8Array {
    return this.#space
  }
  onData(length: number): void {
    this.text += this.#space.toString('latin1', 0, length)
  }
  onDrain(): void {
    this.log.push('drain')
  }
  onEnd(): void {
    this.log.push('end')
  }
  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.log.push(`close ${error?.code ?? ''}`.trim())
  }
}

async function scene() {
  const clock = new Clock()
  const network = new Network(clock, new Random(1), { minDelayMs: 1, maxDelayMs: 5, splitChance: 0.5 })
  const [a, b] = [network.spawn('a', 1), network.spawn('b', 1)]
  const [client, server] = [new Peer(), new Peer()]
  await b.listen({ host: '0.0.0.0', port: 1 }, (socket) => {
    server.socket = socket
    return server
  })
  client.socket = a.dial({ host: 'b', port: 1, timeoutMs: 1000 }, client)
  await clock.run(20)
  return { clock, network, a, b, client, server, pass: (ms: number) => clock.run(clock.nowMs + ms) }
}

test('events run in the order of time, then of their making; a cancelled one does not', async () => {
  const clock = new Clock()
  const ran: number[] = []
  for (const [at, name] of [
    [5, 1],
    [3, 2],
    [5, 3],
    [1, 4],
  ] as const)
    clock.schedule(at, () => ran.push(name))
  clock.schedule(2, () => ran.push(9)).cancel()
  assert.equal(await clock.run(100), 'idle')
  assert.deepEqual(ran, [4, 2, 1, 3])
})

test('promises settle between two events', async () => {
  const clock = new Clock()
  const ran: string[] = []
  clock.schedule(1, () => void Promise.resolve().then(() => Promise.resolve().then(() => ran.push('promise'))))
  clock.schedule(1, () => ran.push('event'))
  await clock.run(10)
  assert.deepEqual(ran, ['promise', 'event'])
})

test('bytes arrive whole and in order, in whatever pieces', async () => {
  const { client, server, pass } = await scene()
  const sent = Array.from({ length: 50 }, (_, i) => `<${i}>`)
  for (const text of sent) client.socket?.write(Buffer.from(text))
  await pass(100)
  assert.equal(server.text, sent.join(''))
})

test('a reader that pauses fills the window; the writer is told when it drains', async () => {
  const { client, server, pass } = await scene()
  server.socket?.pause()
  for (let i = 0; i < 30; i++) client.socket?.write(Buffer.alloc(20_000))
  await pass(100)
  assert.ok((client.socket?.pendingBytes ?? 0) > 0)
  server.socket?.resume()
  await pass(1000)
  assert.deepEqual([client.socket?.pendingBytes, server.text.length], [0, 600_000])
  assert.ok(client.log.includes('drain'))
})

test('half-close keeps the other direction; both ends close the socket', async () => {
  const { client, server, pass } = await scene()
  client.socket?.write(Buffer.from('ask'))
  client.socket?.end()
  await pass(50)
  assert.deepEqual([server.text, server.log], ['ask', ['connect', 'end']])
  server.socket?.write(Buffer.from('answer'))
  server.socket?.end()
  await pass(50)
  assert.equal(client.text, 'answer')
  assert.deepEqual([client.log.at(-1), server.log.at(-1)], ['close', 'close'])
})

test('a cut resets both ends', async () => {
  const { network, client, server, pass } = await scene()
  assert.equal(network.cut('a', 'b'), 2)
  await pass(50)
  assert.deepEqual([client.log.at(-1), server.log.at(-1)], ['close ECONNRESET', 'close ECONNRESET'])
})

test('a half-open link swallows silently, and gives back what TCP would send again', async () => {
  const { network, client, server, pass } = await scene()
  network.kill('a', 'b')
  client.socket?.write(Buffer.from('late'))
  await pass(500)
  assert.deepEqual([server.text, client.log], ['', ['connect']])
  network.heal('a', 'b', false)
  await pass(50)
  assert.equal(server.text, 'late')
})

test('nobody listening refuses; a dead link times out', async () => {
  const { network, a, pass } = await scene()
  const [refused, timedOut] = [new Peer(), new Peer()]
  a.dial({ host: 'b', port: 2, timeoutMs: 1000 }, refused)
  await pass(50)
  network.kill('a', 'b')
  a.dial({ host: 'b', port: 1, timeoutMs: 1000 }, timedOut)
  await pass(1100)
  assert.deepEqual([refused.log, timedOut.log], [['close ECONNREFUSED'], ['close ETIMEDOUT']])
})

test('a paused process gets everything later, a killed one nothing, and its peers a reset', async () => {
  const { a, b, client, server, pass } = await scene()
  b.pause()
  client.socket?.write(Buffer.from('x'))
  await pass(100)
  assert.equal(server.text, '')
  b.resume()
  await pass(50)
  assert.equal(server.text, 'x')
  let fired = false
  a.timer(10, () => (fired = true))
  a.kill()
  await pass(100)
  assert.deepEqual([fired, client.log.length, server.log.at(-1)], [false, 1, 'close ECONNRESET'])
})
