/**
 * The ports that clients connect to: per listener one for bootstrap and one per node id, the same after every restart.
 * Node ids of the configuration are bound at start-up; others when their broker is first seen, before any client is
 * told of them.
 */
import type { ListenerConfig } from '../config/schema.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Listener, Socket, SocketHandler } from '../runtime/socket.ts'
import type { Log } from '../telemetry/log.ts'

export type Accept = (listener: ListenerConfig, nodeId: number, socket: Socket) => SocketHandler | undefined

/** A port that could not be had is tried again when its broker is next named, but not more often than this. */
const RETRY_MS = 5000

/** The bootstrap address's place among the node ids. */
export const BOOTSTRAP = -1

export class Ports {
  private readonly runtime: Runtime
  private readonly log: Log
  private readonly listeners: readonly ListenerConfig[]
  private readonly accept: Accept
  /** `listener|node id` → its listening socket, or the attempt to get it. */
  private readonly bound = new Map<string, Listener>()
  private readonly attempts = new Map<string, Promise<void>>()
  /** Ports that could not be had while we run, and when it is worth trying again. */
  private readonly failed = new Map<string, number>()
  private closed = false

  constructor(runtime: Runtime, log: Log, listeners: readonly ListenerConfig[], accept: Accept) {
    this.runtime = runtime
    this.log = log
    this.listeners = listeners
    this.accept = accept
  }

  /** Binds what the configuration names. Rejects with a PortError at the first port that cannot be had. */
  async open(): Promise<void> {
    for (const listener of this.listeners)
      await Promise.all([BOOTSTRAP, ...listener.nodeIds].map((nodeId) => this.bind(listener, nodeId)))
  }

  isBound(listener: string, nodeId: number): boolean {
    return this.bound.has(`${listener}|${nodeId}`)
  }

  canServe(listener: ListenerConfig, nodeId: number): boolean {
    return portOf(listener, nodeId) <= 65_535 && !this.failed.has(`${listener.name}|${nodeId}`)
  }

  private mayTry(listener: ListenerConfig, nodeId: number): boolean {
    const againAt = this.failed.get(`${listener.name}|${nodeId}`) ?? 0
    return portOf(listener, nodeId) <= 65_535 && this.runtime.now() >= againAt
  }

  /** Every (listener, node id) that is bound. */
  all(): { listener: ListenerConfig; nodeId: number }[] {
    return this.listeners.flatMap((listener) =>
      [...this.bound.keys()]
        .filter((key) => key.startsWith(`${listener.name}|`))
        .map((key) => ({ listener, nodeId: Number(key.slice(listener.name.length + 1)) }))
        .sort((a, b) => a.nodeId - b.nodeId),
    )
  }

  /** A promise while any of these nodes' ports is still to be bound; undefined if all are, as nearly always. */
  binding(nodeIds: readonly number[]): Promise<void> | undefined {
    let missing: Promise<void>[] | undefined
    for (const listener of this.listeners)
      for (const nodeId of nodeIds) {
        if (nodeId < 0 || this.isBound(listener.name, nodeId) || !this.mayTry(listener, nodeId)) continue
        ;(missing ??= []).push(this.bindLate(listener, nodeId))
      }
    return missing === undefined ? undefined : Promise.all(missing).then(() => undefined)
  }

  /** Stops accepting; connections live on. */
  async close(): Promise<void> {
    this.closed = true
    await Promise.all([...this.bound.values()].map((listener) => listener.close()))
    this.bound.clear()
  }

  /** A port that is needed while we run: if it cannot be had, its broker is left out of the answers, and that is said once. */
  private async bindLate(listener: ListenerConfig, nodeId: number): Promise<void> {
    const key = `${listener.name}|${nodeId}`
    try {
      await this.bind(listener, nodeId)
      this.failed.delete(key)
    } catch (error) {
      if (!this.failed.has(key)) this.log.error({ listener: listener.name, node: nodeId }, (error as Error).message)
      this.failed.set(key, this.runtime.now() + RETRY_MS)
      this.attempts.delete(key)
    }
  }

  private bind(listener: ListenerConfig, nodeId: number): Promise<void> {
    const key = `${listener.name}|${nodeId}`
    let attempt = this.attempts.get(key)
    if (attempt === undefined) {
      attempt = this.listen(listener, nodeId, key)
      this.attempts.set(key, attempt)
    }
    return attempt
  }

  private async listen(listener: ListenerConfig, nodeId: number, key: string): Promise<void> {
    const port = portOf(listener, nodeId)
    try {
      const accept = (socket: Socket) => this.accept(listener, nodeId, socket)
      const bound = await this.runtime.listen({ host: listener.bind, port }, accept)
      if (this.closed) await bound.close()
      else this.bound.set(key, bound)
    } catch (error) {
      throw new PortError(listener, nodeId, port, error as NodeJS.ErrnoException)
    }
  }
}

export function portOf(listener: ListenerConfig, nodeId: number): number {
  return nodeId === BOOTSTRAP ? listener.bootstrapPort : listener.basePort + nodeId
}

/** A port cannot be listened on; says which, why and what to do. */
export class PortError extends Error {
  override readonly name = 'PortError'
  readonly code = 'HG_PORT_UNAVAILABLE'

  constructor(listener: ListenerConfig, nodeId: number, port: number, cause: NodeJS.ErrnoException) {
    const what = nodeId === BOOTSTRAP ? 'the bootstrap port' : `the port of node ${nodeId}`
    const where = `${listener.bind}:${port}`
    super(`listener ${listener.name} cannot listen on ${where} for ${what}: ${explain(cause)}`, { cause })
  }
}

function explain(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE')
    return 'the port is in use; stop whatever has it, or set basePort (and bootstrapPort) of the listener to free ports'
  if (error.code === 'EACCES') return 'not permitted; ports below 1024 need a privilege: set a higher basePort'
  if (error.code === 'EADDRNOTAVAIL')
    return 'this host does not have that address; set bind of the listener to one it has'
  return error.message
}
