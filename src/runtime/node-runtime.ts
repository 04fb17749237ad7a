/** The real world: Node's clock, timers, random numbers and TCP. */
import { randomInt } from 'node:crypto'
import net from 'node:net'
import { adopt, dialOptions, keepAlive, NodeSocket } from './node-socket.ts'
import type { Runtime, Timer } from './runtime.ts'
import type { AcceptHandler, DialOptions, Listener, ListenOptions, Socket, SocketHandler } from './socket.ts'

export interface NodeRuntimeOptions {
  /** `false`: read accepted sockets through 'data' events, as where the self-test of `adopt` fails. */
  onread?: boolean
}

/**
 * @returns the runtime on `node:net`; tries once, on loopback, whether accepted sockets can be read into our own buffers.
 */
export async function nodeRuntime(options: NodeRuntimeOptions = {}): Promise<Runtime & { readonly onread: boolean }> {
  const onread = options.onread ?? (await adoptionWorks())
  return {
    onread,
    now: () => performance.now(),
    wallNow: () => Date.now(),
    timer: startTimer,
    soon: (fire) => void setImmediate(fire),
    random: (below) => randomInt(below),
    dial,
    listen: (where, accept) => listen(where, accept, onread),
  }
}

function startTimer(delayMs: number, fire: () => void): Timer {
  const timer = setTimeout(fire, delayMs)
  timer.unref()
  return { cancel: () => clearTimeout(timer) }
}

function dial(options: DialOptions, handler: SocketHandler): Socket {
  const socket = new NodeSocket()
  const raw = net.connect({
    ...dialOptions,
    host: options.host,
    port: options.port,
    onread: socket.onread(handler),
  })
  socket.attach(raw, handler, false)
  const timer = setTimeout(() => {
    const error: NodeJS.ErrnoException = new Error(
      `no connection to ${options.host}:${options.port} in ${options.timeoutMs} ms`,
    )
    error.code = 'ETIMEDOUT'
    socket.fail(error)
  }, options.timeoutMs)
  const stop = (): void => clearTimeout(timer)
  raw.once('connect', stop)
  raw.once('close', stop)
  return socket
}

function listen(where: ListenOptions, accept: AcceptHandler, onread: boolean): Promise<Listener> {
  const server = net.createServer(
    { pauseOnConnect: true, noDelay: true, allowHalfOpen: true, ...keepAlive },
    (accepted) => welcome(accepted, accept, onread),
  )
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: where.host, port: where.port, backlog: where.backlog ?? 1024 }, () => {
      server.removeListener('error', reject)
      server.on('error', () => undefined) // accept() failing for want of descriptors: the client sees a refusal, we go on
      const address = server.address() as net.AddressInfo
      resolve({ host: address.address, port: address.port, close: () => closeServer(server) })
    })
  })
}

function closeServer(server: net.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close()
    resolve()
  })
}

function welcome(accepted: net.Socket, accept: AcceptHandler, onread: boolean): void {
  const socket = new NodeSocket()
  socket.learnAddresses(accepted)
  const handler = accept(socket)
  if (handler === undefined) {
    accepted.destroy()
    return
  }
  if (onread) socket.attach(adopt(accepted, socket.onread(handler)), handler, false)
  else socket.attach(accepted, handler, true)
  handler.onConnect?.()
}

/** Sends a few bytes to ourselves through an adopted socket and waits for the echo and the clean end. */
async function adoptionWorks(): Promise<boolean> {
  const buffer = Buffer.alloc(64)
  const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, (accepted) => {
    try {
      const socket = adopt(accepted, {
        buffer: () => buffer,
        callback: (length) => {
          socket.write(Buffer.from(buffer.subarray(0, length)))
          return true
        },
      })
      socket.on('error', () => socket.destroy())
      socket.on('end', () => socket.end())
      socket.resume()
    } catch {
      accepted.destroy()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const echoed = await new Promise<string>((resolve) => {
    let text = ''
    const client = net.connect({ host: '127.0.0.1', port, timeout: 500 }, () => client.end('headgate'))
    client.on('data', (bytes) => (text += bytes.toString('latin1')))
    client.on('timeout', () => client.destroy())
    client.on('error', () => undefined)
    client.on('close', () => resolve(text))
  })
  server.close()
  return echoed === 'headgate'
}
