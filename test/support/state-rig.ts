/** Proxies' state shells on one fake cluster in virtual time, each on a network of its own that can be cut. */
import { Brokers } from '../../src/cluster/brokers.ts'
import { ClusterClient } from '../../src/cluster/cluster-client.ts'
import { FakeBroker, type FakeBrokerOptions } from '../../src/fake-broker/fake-broker.ts'
import { ChunkPool } from '../../src/net/chunk-pool.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import type { DialOptions, Socket, SocketHandler } from '../../src/runtime/socket.ts'
import { StateShell, type StateShellOptions } from '../../src/state/shell/state-shell.ts'
import { RecordingLog } from './telemetry.ts'
import { systemError, type VirtualRuntime } from './virtual-runtime.ts'

/** The runtime of one process: killed, its timers and sockets are gone. */
export class ProcessRuntime implements Runtime {
  readonly #world: VirtualRuntime
  readonly #sockets = new Set<Socket>()
  isDead = false
  isCutOff = false

  constructor(world: VirtualRuntime) {
    this.#world = world
  }

  now = (): number => this.#world.now()
  wallNow = (): number => this.#world.wallNow()
  random = (below: number): number => this.#world.random(below)
  listen: Runtime['listen'] = (options, accept) => this.#world.listen(options, accept)

  timer(delayMs: number, fire: () => void): { cancel(): void } {
    return this.#world.timer(delayMs, () => {
      if (!this.isDead) fire()
    })
  }

  soon(fire: () => void): void {
    this.timer(0, fire)
  }

  dial(options: DialOptions, handler: SocketHandler): Socket {
    if (this.isDead || this.isCutOff) {
      this.#world.timer(1, () =>
        handler.onClose(systemError('ECONNREFUSED', `connect ${options.host}:${options.port}`)),
      )
      return noSocket
    }
    const socket = this.#world.dial(options, handler)
    this.#sockets.add(socket)
    return socket
  }

  /** As kill -9: nothing runs any more and the kernel closes the sockets. */
  kill(): void {
    this.isDead = true
    this.#cut()
  }

  /** The network is gone, or comes back. */
  cutOff(isCutOff: boolean): void {
    this.isCutOff = isCutOff
    if (isCutOff) this.#cut()
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy(true)
    this.#sockets.clear()
  }
}

const noSocket: Socket = {
  remoteAddress: '',
  remotePort: 0,
  localAddress: '',
  localPort: 0,
  pendingBytes: 0,
  write: (_bytes, taken) => taken?.(),
  cork: () => undefined,
  uncork: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
  end: () => undefined,
  destroy: () => undefined,
}

export interface StateProcess {
  readonly runtime: ProcessRuntime
  readonly shell: StateShell
  readonly cluster: ClusterClient
  readonly log: RecordingLog
}

export async function fakeCluster(world: VirtualRuntime, options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  return FakeBroker.start(world, { autoCreatePartitions: 0, nodeIds: [1, 2, 3], ...options })
}

/** A cluster client as a process would make it. */
export function clientOf(runtime: Runtime, broker: FakeBroker, log = new RecordingLog()): ClusterClient {
  const pool = new ChunkPool()
  const bootstrap = broker.bootstrap.map((address) => {
    const [host = '', port = ''] = address.split(':')
    return { host, port: Number(port) }
  })
  const onNew = () => undefined
  const brokers = new Brokers({ runtime, pool, log, bootstrap, dialTimeoutMs: 2000, refreshMs: 300_000, onNew })
  return new ClusterClient({ runtime, pool, brokers, dialTimeoutMs: 2000, requestTimeoutMs: 5000 })
}

export function startProxy(
  world: VirtualRuntime,
  broker: FakeBroker,
  name: string,
  options: Partial<StateShellOptions> = {},
): StateProcess {
  const runtime = new ProcessRuntime(world)
  const log = new RecordingLog()
  const cluster = clientOf(runtime, broker, log)
  const shell = new StateShell({ runtime, cluster, log, host: `${name}:9190`, name, ...options })
  shell.start()
  return { runtime, shell, cluster, log }
}
