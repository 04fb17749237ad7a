/**
 * A client connection of the proxy in virtual time, between a scripted client and a scripted broker. Both sides cut
 * frames themselves, so that the code under test is not judged by its own framing.
 */
import { ChunkPool } from '../../src/net/chunk-pool.ts'
import {
  Connection,
  type ConnectionContext,
  type ConnectionLimits,
  type Target,
} from '../../src/pipeline/connection.ts'
import { Tap } from '../../src/pipeline/tap.ts'
import type { Handler } from '../../src/pipeline/handler.ts'
import type { Instance, InstanceRegistry } from '../../src/pipeline/instance.ts'
import { compilePlans } from '../../src/pipeline/plan.ts'
import type { Socket, SocketHandler } from '../../src/runtime/socket.ts'
import { Splitter } from './frames.ts'
import { RecordingLog, RecordingMeter } from './telemetry.ts'
import { VirtualRuntime } from './virtual-runtime.ts'
import type { VirtualSocket } from './virtual-socket.ts'

export const PROXY_PORT = 9092
export const BROKER_PORT = 19092

export const defaultLimits: ConnectionLimits = {
  requestBytes: 100 * 1024 * 1024,
  responseBytes: 100 * 1024 * 1024,
  inFlight: 1024,
  bufferedBytes: 512 * 1024,
  headerTimeoutMs: 10_000,
  progressTimeoutMs: 30_000,
  idleTimeoutMs: 0,
  holdFrames: 16,
  dialTimeoutMs: 10_000,
}

/** One end of a connection as a test sees it: frames that came, and a way to send. */
export class Peer implements SocketHandler {
  readonly frames: Buffer[] = []
  readonly splitter = new Splitter()
  receivedBytes = 0
  connected = false
  ended = false
  closed = false
  error: NodeJS.ErrnoException | undefined
  socket!: Socket
  onFrame: (frame: Buffer, peer: Peer) => void = () => undefined
  /** What a peer does when the other side ends: by default it ends too. */
  onEndDo: (peer: Peer) => void = (peer) => peer.socket.end()
  private readonly space = Buffer.alloc(16 * 1024)

  send(bytes: Buffer): void {
    this.socket.write(Buffer.from(bytes))
  }

  onConnect(): void {
    this.connected = true
  }

  buffer(): Uint8Array {
    return this.space
  }

  onData(length: number): void {
    this.receivedBytes += length
    for (const frame of this.splitter.push(Buffer.from(this.space.subarray(0, length)))) {
      this.frames.push(frame)
      this.onFrame(frame, this)
    }
  }

  onDrain(): void {
    // peers may have as much pending as they like
  }

  onEnd(): void {
    this.ended = true
    this.onEndDo(this)
  }

  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.closed = true
    this.error = error
  }
}

export interface RigOptions {
  seed?: number
  handlers?: readonly Handler[] | ((runtime: VirtualRuntime) => readonly Handler[])
  limits?: Partial<ConnectionLimits>
  target?: ConnectionContext['target']
  /** Called for each connection to the broker. */
  broker?: (broker: Peer) => void
}

export class Rig {
  readonly runtime: VirtualRuntime
  readonly meter = new RecordingMeter()
  readonly log = new RecordingLog()
  readonly pool = new ChunkPool()
  readonly context: ConnectionContext
  readonly connections: Connection[] = []
  readonly brokers: Peer[] = []
  readonly clients: Peer[] = []
  readonly open = new Set<Connection>()
  private sweeping = false

  private constructor(options: RigOptions) {
    const { handlers = [], limits = {}, seed = 1 } = options
    this.runtime = new VirtualRuntime(seed)
    this.context = {
      runtime: this.runtime,
      pool: this.pool,
      plans: compilePlans(typeof handlers === 'function' ? handlers(this.runtime) : handlers),
      limits: { ...defaultLimits, ...limits },
      meter: this.meter,
      log: this.log,
      instances: plainInstances(),
      tap: new Tap(),
      listener: 'test',
      nodeId: 0,
      target: options.target ?? firstOnly({ host: '127.0.0.1', port: BROKER_PORT }),
      onClose: (connection) => this.open.delete(connection),
    }
  }

  static async start(options: RigOptions = {}): Promise<Rig> {
    const rig = new Rig(options)
    await rig.runtime.listen({ host: '127.0.0.1', port: PROXY_PORT }, (socket) => {
      const connection = new Connection(rig.connections.length + 1, socket, rig.context)
      rig.connections.push(connection)
      rig.open.add(connection)
      return connection.requests
    })
    await rig.runtime.listen({ host: '127.0.0.1', port: BROKER_PORT }, (socket) => {
      const broker = new Peer()
      broker.socket = socket
      rig.brokers.push(broker)
      options.broker?.(broker)
      socket.resume()
      rig.runtime.soon(() => socket.resume())
      return broker
    })
    return rig
  }

  connect(): Peer {
    const client = new Peer()
    this.clients.push(client)
    client.socket = this.runtime.dial({ host: '127.0.0.1', port: PROXY_PORT, timeoutMs: 1000 }, client)
    return client
  }

  /** Sweeps every connection once a (virtual) second, as the proxy does. */
  sweep(): void {
    if (this.sweeping) return
    this.sweeping = true
    const again = (): void => {
      for (const connection of this.open) connection.sweep(this.runtime.now())
      this.runtime.timer(1000, again)
    }
    this.runtime.timer(1000, again)
  }

  run(done?: () => boolean, forMs?: number): Promise<boolean> {
    return this.runtime.run(done, forMs)
  }

  /** The last connection. */
  get connection(): Connection {
    const connection = this.connections.at(-1)
    if (connection === undefined) throw new Error('no connection yet')
    return connection
  }

  get broker(): Peer {
    const broker = this.brokers.at(-1)
    if (broker === undefined) throw new Error('no broker connection yet')
    return broker
  }

  /** The highest number of unsent bytes that the proxy ever had towards either side. */
  get peakBytes(): number {
    const { client, upstream } = this.connection
    return Math.max(peak(client), upstream === undefined ? 0 : peak(upstream))
  }
}

function peak(socket: Socket): number {
  return (socket as VirtualSocket).peakBytes
}

export function firstOnly(target: Target): ConnectionContext['target'] {
  return (tried) => (tried.length === 0 ? target : undefined)
}

/** One instance for all. */
export function plainInstances(): InstanceRegistry {
  const instance: Instance = {
    id: '1',
    recognisedBy: 'source',
    source: '127.0.0.1',
    clientId: null,
    softwareName: '',
    softwareVersion: '',
    memberships: new Map(),
    ambiguous: false,
    connections: 0,
  }
  return { opened: () => undefined, named: () => instance, closed: () => undefined }
}
