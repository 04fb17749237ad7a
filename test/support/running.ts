/** The proxy in this process, on real sockets and free ports, with a log and counters that a test can read. */
import { freePorts } from '../../scripts/kafka/ports.ts'
import { configSchema } from '../../src/config/schema.ts'
import { type ProxyDeps, type RunningProxy, startProxy } from '../../src/lifecycle/proxy.ts'
import { nodeRuntime } from '../../src/runtime/node-runtime.ts'
import { RecordingLog, RecordingMeters } from './telemetry.ts'

export interface Running {
  readonly proxy: RunningProxy
  readonly log: RecordingLog
  readonly meters: RecordingMeters
  /** host:port of the bootstrap address of the first listener. */
  readonly bootstrap: string
  readonly basePort: number
  /** host:port of a node of the first listener. */
  node(nodeId: number): string
}

export interface RunningOptions {
  upstream: readonly string[]
  /** Listener settings; ports are filled in where missing. Default: one, in mode `ports`, nodes 0 to 3. */
  listeners?: readonly Record<string, unknown>[]
  limits?: Record<string, unknown>
  settings?: Record<string, unknown>
  /** The first free port of a range of 20; default: any. */
  basePort?: number
  deps?: Partial<ProxyDeps>
  /** How accepted sockets are read; see `nodeRuntime`. */
  onread?: boolean
}

/** Ports of a listener: bootstrap, then nodes 0 to 18. */
export async function portRange(): Promise<number> {
  const ports = await freePorts(20)
  return (ports[0] ?? 0) + 1
}

export async function run(options: RunningOptions): Promise<Running> {
  const basePort = options.basePort ?? (await portRange())
  const log = new RecordingLog()
  const meters = new RecordingMeters()
  const listeners = options.listeners ?? [{}]
  const config = configSchema.parse({
    upstream: { bootstrap: options.upstream, dialTimeout: '3s', ...options.settings },
    listeners: listeners.map((listener, i) => ({
      name: `l${i}`,
      nodeIds: '0-3',
      ...(i === 0 ? { basePort } : {}),
      ...listener,
    })),
    limits: options.limits ?? {},
  })
  const runtime = await nodeRuntime(options.onread === undefined ? {} : { onread: options.onread })
  const proxy = await startProxy(config, { runtime, log, meters, ...options.deps })
  const at = (nodeId: number) => `127.0.0.1:${basePort + nodeId}`
  return { proxy, log, meters, basePort, bootstrap: at(-1), node: at }
}
