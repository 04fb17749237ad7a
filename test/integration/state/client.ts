/** Our own client of a real cluster. */
import { Brokers } from '../../../src/cluster/brokers.ts'
import { ClusterClient } from '../../../src/cluster/cluster-client.ts'
import { ChunkPool } from '../../../src/net/chunk-pool.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'

/** @param bootstrap `host:port` */
export async function clientOf(bootstrap: string): Promise<ClusterClient> {
  const [host = '', port = ''] = bootstrap.split(':')
  const runtime = await nodeRuntime()
  const pool = new ChunkPool()
  const silent = () => undefined
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const address = { host, port: Number(port) }
  const settings = { runtime, pool, dialTimeoutMs: 5000 }
  const brokers = new Brokers({ ...settings, log, bootstrap: [address], refreshMs: 300_000, onNew: silent })
  return new ClusterClient({ ...settings, brokers, requestTimeoutMs: 10_000 })
}
