/** The brokers that the cluster names, each dialled once where Headgate would dial it. */
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Broker, Brokers } from '../cluster/brokers.ts'
import { formatHostPort, type HostPort } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import { ChunkPool } from '../net/chunk-pool.ts'
import { nodeRuntime } from '../runtime/node-runtime.ts'
import type { ProbeResult } from './probe.ts'

export async function probeBrokers(config: Config): Promise<ProbeResult[]> {
  const found = await askBrokers(config)
  if (typeof found === 'string') return [{ ok: false, text: found, upstream: false }]
  return Promise.all(found.map((broker) => probeBroker(broker, config)))
}

/** The brokers of the cluster, or why they are not known. */
async function askBrokers({ upstream }: Config): Promise<Broker[] | string> {
  const nothing = () => undefined
  const brokers = new Brokers({
    runtime: await nodeRuntime(),
    pool: new ChunkPool(),
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    bootstrap: upstream.bootstrap,
    dialTimeoutMs: upstream.dialTimeoutMs,
    refreshMs: upstream.metadataRefreshMs,
    onNew: nothing,
  })
  const before = brokers.problem
  brokers.start()
  while (brokers.problem === before) await delay(10)
  brokers.stop()
  return brokers.problem ?? brokers.all()
}

async function probeBroker({ nodeId, host, port }: Broker, config: Config): Promise<ProbeResult> {
  const dials = config.listeners.flatMap(({ dial }) => dial.get(nodeId) ?? [])
  const address = dials[0] ?? { host, port }
  const what = `node ${nodeId} at ${formatHostPort(address)}${dials[0] ? ' (dial)' : ''}`
  const tooHigh = config.listeners.find(({ basePort }) => basePort + nodeId > 65_535)
  if (tooHigh) {
    const text = `node ${nodeId} has no port: basePort ${tooHigh.basePort} + ${nodeId} is above 65535 (fix: lower basePort)`
    return { ok: false, text, upstream: false }
  }
  const error = await tryConnect(address, config.upstream.dialTimeoutMs)
  if (error === undefined) return { ok: true, text: `${what} can be reached`, upstream: false }
  const fix = dials[0]
    ? 'correct dial'
    : `set listeners[].dial: {${nodeId}: "host:port"} to an address that works from here`
  return { ok: false, text: `${what} cannot be reached: ${error} (fix: ${fix})`, upstream: false }
}

function tryConnect(address: HostPort, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const finish = (error: string | undefined) => {
      socket.destroy()
      resolve(error)
    }
    socket.setTimeout(timeoutMs, () => finish(`no answer within ${timeoutMs} ms`))
    socket.once('connect', () => finish(undefined))
    socket.once('error', (error) => finish(error.message))
  })
}
