import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import net from 'node:net'
import test from 'node:test'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import type { Listener, Socket, SocketHandler } from '../../../src/runtime/socket.ts'
import { Prng } from '../../support/prng.ts'

/** A handler that keeps what it is told, and does what a test wants at each event. */
class Recorder implements SocketHandler {
  readonly events: string[] = []
  readonly pieces: Buffer[] = []
  error: NodeJS.ErrnoException | undefined
  socket!: Socket
  size: number
  onEvent: (event: string, socket: Socket) => void = () => undefined
  private space = Buffer.alloc(0)
  private waiting: { event: string; resolve: () => void }[] = []

  constructor(size = 1000) {
    this.size = size
  }

  buffer(): Uint8Array {
    this.space = Buffer.alloc(this.size)
    return this.space
  }
  onConnect(): void {
    this.note('connect')
  }
  onData(length: number): void {
    assert.ok(length > 0 && length <= this.size)
    this.pieces.push(Buffer.from(this.space.subarray(0, length)))
    this.note('data')
  }
  onDrain(): void {
    this.note('drain')
  }
  onEnd(): void {
    this.note('end')
  }
  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.error = error
    this.note('close')
  }

  get bytes(): Buffer {
    return Buffer.concat(this.pieces)
  }

  when(event: string): Promise<void> {
    if (this.events.includes(event)) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ event, resolve }))
  }

  private note(event: string): void {
    this.events.push(event)
    this.onEvent(event, this.socket)
    for (const waiter of this.waiting.filter((one) => one.event === event)) waiter.resolve()
  }
}

interface Pair {
  runtime: Runtime
  listener: Listener
  /** Our accepted socket, and the plain one that connected to it. */
  accepted: Recorder
  plain: net.Socket
}

async function accept(runtime: Runtime, recorder = new Recorder()): Promise<Pair> {
  const listener = await runtime.listen({ host: '127.0.0.1', port: 0 }, (socket) => {
    recorder.socket = socket
    return recorder
  })
  const plain = net.connect({ host: '127.0.0.1', port: listener.port, allowHalfOpen: true })
  plain.on('error', () => undefined)
  await recorder.when('connect')
  return { runtime, listener, accepted: recorder, plain }
}

function once(socket: net.Socket, event: string): Promise<unknown> {
  return new Promise((resolve) => socket.once(event, resolve))
}

for (const onread of [true, false]) {
  const how = onread ? 'read into our buffers' : "read through 'data' events"

  test(`${how}: nothing comes before resume, then every byte in order, then the end`, async () => {
    const { listener, accepted, plain } = await accept(await nodeRuntime({ onread }), new Recorder(777))
    const sent = new Prng(1).bytes(300_000)
    plain.end(sent)
    assert.deepEqual(accepted.events, ['connect'])
    accepted.socket.resume()
    await accepted.when('end')
    assert.ok(accepted.bytes.equals(sent))
    accepted.socket.end()
    await accepted.when('close')
    assert.equal(accepted.error, undefined)
    assert.equal(accepted.events.filter((event) => event === 'close').length, 1)
    await listener.close()
  })

  test(`${how}: pause stops reading, resume goes on, and what was sent meanwhile is not lost`, async () => {
    const { listener, accepted, plain } = await accept(await nodeRuntime({ onread }))
    accepted.onEvent = (event, socket) => {
      if (event !== 'data') return
      socket.pause()
      setImmediate(() => socket.resume())
    }
    accepted.socket.resume()
    const sent = new Prng(2).bytes(60_000)
    plain.end(sent)
    await accepted.when('end')
    assert.ok(accepted.bytes.equals(sent))
    plain.destroy()
    accepted.socket.destroy()
    await listener.close()
  })

  test(`${how}: half-close in both directions`, async () => {
    const { listener, accepted, plain } = await accept(await nodeRuntime({ onread }))
    accepted.socket.resume()
    accepted.socket.write(Buffer.from('first'))
    accepted.socket.end()
    plain.resume()
    await once(plain, 'end')
    plain.write('still')
    await accepted.when('data')
    assert.equal(accepted.events.includes('close'), false)
    plain.end()
    await accepted.when('close')
    assert.equal(accepted.bytes.toString(), 'still')
    await listener.close()
  })

  test(`${how}: a reset arrives as an error, and is sent by destroy(true)`, async () => {
    const runtime = await nodeRuntime({ onread })
    const first = await accept(runtime)
    first.accepted.socket.resume()
    first.plain.resetAndDestroy()
    await first.accepted.when('close')
    assert.equal(first.accepted.error?.code, 'ECONNRESET')
    const second = await accept(runtime)
    second.accepted.socket.resume()
    const error = new Promise<NodeJS.ErrnoException>((resolve) => second.plain.once('error', resolve))
    second.accepted.socket.destroy(true)
    assert.equal((await error).code, 'ECONNRESET')
    await Promise.all([first.listener.close(), second.listener.close()])
  })

  test(`${how}: an error thrown by the handler closes its own socket, and nothing more reaches it`, async () => {
    const { listener, accepted, plain } = await accept(await nodeRuntime({ onread }), new Recorder(10))
    accepted.onEvent = (event) => {
      if (event === 'data') throw new TypeError('a bug')
    }
    accepted.socket.resume()
    plain.write(Buffer.alloc(5000))
    await accepted.when('close')
    assert.equal(accepted.error?.message, 'a bug')
    assert.equal(accepted.events.filter((event) => event === 'data').length, 1)
    plain.destroy()
    await listener.close()
  })
}

test('accepted sockets can be read into our buffers on this version of Node', async () => {
  assert.equal((await nodeRuntime()).onread, true)
})

test('pending bytes grow while the peer does not read, every write is taken once, and drain comes', async () => {
  const { listener, accepted, plain } = await accept(await nodeRuntime())
  plain.pause()
  let taken = 0
  const chunk = Buffer.alloc(256 * 1024)
  for (let i = 0; i < 80; i++) accepted.socket.write(chunk, () => taken++)
  assert.ok(accepted.socket.pendingBytes > 1024 * 1024)
  plain.resume()
  await accepted.when('drain')
  assert.equal(accepted.socket.pendingBytes, 0)
  assert.equal(taken, 80)
  plain.destroy()
  accepted.socket.destroy()
  await listener.close()
})

test('writes are taken once also when the socket dies, and after its death', async () => {
  const { listener, accepted, plain } = await accept(await nodeRuntime())
  plain.pause()
  let taken = 0
  for (let i = 0; i < 40; i++) accepted.socket.write(Buffer.alloc(256 * 1024), () => taken++)
  accepted.socket.destroy()
  await accepted.when('close')
  accepted.socket.write(Buffer.alloc(10), () => taken++)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(taken, 41)
  plain.destroy()
  await listener.close()
})

test('a connection that is refused, and one that takes too long', async () => {
  const runtime = await nodeRuntime()
  const { listener, accepted, plain } = await accept(runtime)
  plain.destroy()
  accepted.socket.destroy()
  await listener.close()
  const refused = new Recorder()
  refused.socket = runtime.dial({ host: '127.0.0.1', port: listener.port, timeoutMs: 5000 }, refused)
  await refused.when('close')
  assert.equal(refused.error?.code, 'ECONNREFUSED')
  assert.deepEqual(refused.events, ['close'])
  const slow = new Recorder()
  slow.socket = runtime.dial({ host: '127.0.0.1', port: listener.port, timeoutMs: 0 }, slow)
  slow.socket.destroy()
  await slow.when('close')
})

test('a dialled connection: who is at its ends, data, and no time-out once it stands', async () => {
  const runtime = await nodeRuntime()
  const echo = net.createServer((socket) => socket.pipe(socket))
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
  const { port } = echo.address() as net.AddressInfo
  const dialled = new Recorder(64)
  dialled.socket = runtime.dial({ host: 'localhost', port, timeoutMs: 2000 }, dialled)
  await dialled.when('connect')
  assert.equal(dialled.socket.remotePort, port)
  assert.equal(dialled.socket.localAddress, '127.0.0.1')
  const sent = new Prng(3).bytes(20_000)
  dialled.socket.cork()
  dialled.socket.write(sent.subarray(0, 100))
  dialled.socket.write(sent.subarray(100))
  dialled.socket.uncork()
  dialled.socket.end()
  await dialled.when('close')
  assert.ok(dialled.bytes.equals(sent))
  echo.close()
})

test('a listener that closes keeps what it accepted', async () => {
  const { listener, accepted, plain } = await accept(await nodeRuntime())
  accepted.socket.resume()
  await listener.close()
  plain.write('x')
  await accepted.when('data')
  plain.destroy()
  accepted.socket.destroy()
  await accepted.when('close')
})

test('a socket that the handler does not want is closed', async () => {
  const runtime = await nodeRuntime()
  const listener = await runtime.listen({ host: '127.0.0.1', port: 0 }, () => undefined)
  const plain = net.connect({ host: '127.0.0.1', port: listener.port })
  plain.on('error', () => undefined)
  await once(plain, 'close')
  await listener.close()
  await assert.rejects(
    runtime.listen({ host: '203.0.113.1', port: 0 }, () => undefined),
    { code: 'EADDRNOTAVAIL' },
  )
})

test('addresses are shown as IPv4, also where the listener is IPv6', async () => {
  const runtime = await nodeRuntime()
  const recorder = new Recorder()
  const listener = await runtime.listen({ host: '::', port: 0 }, (socket) => {
    assert.equal(socket.localAddress, '127.5.6.7')
    assert.equal(socket.remoteAddress, '127.0.0.1')
    recorder.socket = socket
    return recorder
  })
  const plain = net.connect({ host: '127.5.6.7', port: listener.port })
  await recorder.when('connect')
  assert.equal(recorder.socket.localAddress, '127.5.6.7')
  plain.destroy()
  recorder.socket.destroy()
  await recorder.when('close')
  await listener.close()
})

test('timers fire once, or never when cancelled', async () => {
  const runtime = await nodeRuntime()
  const fired: string[] = []
  await new Promise<void>((resolve) => {
    runtime.timer(1, () => fired.push('never')).cancel()
    const once_ = runtime.timer(1, () => {
      fired.push('once')
      once_.cancel()
      setImmediate(resolve)
    })
    setTimeout(() => undefined, 50) // timers of ours do not keep the process alive
  })
  runtime.soon(() => fired.push('soon'))
  assert.deepEqual(fired, ['once'])
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(fired, ['once', 'soon'])
})

test('both kinds of socket are kept alive, so that a peer that vanished is noticed', {
  skip: !existsSync('/proc/net/tcp'),
}, async () => {
  const runtime = await nodeRuntime()
  const { listener, accepted, plain } = await accept(runtime)
  const dialled = new Recorder()
  const silent = net.createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as net.AddressInfo
  dialled.socket = runtime.dial({ host: '127.0.0.1', port, timeoutMs: 2000 }, dialled)
  await dialled.when('connect')
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const hex = (socket: Socket) =>
    [socket.localPort, socket.remotePort].map((one) => one.toString(16).toUpperCase().padStart(4, '0'))
  for (const { socket } of [accepted, dialled]) {
    const [local = '', remote = ''] = hex(socket)
    const line = lines.find(
      ([, from, to]) => from?.endsWith(`:${local}`) === true && to?.endsWith(`:${remote}`) === true,
    )
    assert.equal(line?.[5]?.slice(0, 2), '02', 'the keep-alive timer runs')
  }
  for (const socket of [accepted.socket, dialled.socket, plain]) socket.destroy()
  silent.close()
  await listener.close()
})
