/**
 * A proxy that is nothing but its state shell, as a process of its own: prints its status as a JSON line whenever it
 * changes, appends what it reads as JSON lines, and leaves the fleet when its input ends.
 * Arguments: bootstrap, topic, group, name, session time-out in ms.
 */
import { createInterface } from 'node:readline'
import { Brokers } from '../../../src/cluster/brokers.ts'
import { ClusterClient } from '../../../src/cluster/cluster-client.ts'
import { ChunkPool } from '../../../src/net/chunk-pool.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import type { StateRecord } from '../../../src/state/record.ts'
import { StateShell } from '../../../src/state/shell/state-shell.ts'
import type { Log } from '../../../src/telemetry/log.ts'

const [bootstrap = '', topic = '', group = '', name = '', session = ''] = process.argv.slice(2)
const [host = '', port = ''] = bootstrap.split(':')
const say = (fields: object, message: string) => console.error(JSON.stringify({ name, message, ...fields }))
const log: Log = { debug: () => undefined, info: say, warn: say, error: say }
const runtime = await nodeRuntime()
const pool = new ChunkPool()
const brokers = new Brokers({
  runtime,
  pool,
  log,
  bootstrap: [{ host, port: Number(port) }],
  dialTimeoutMs: 2000,
  refreshMs: 300_000,
  onNew: () => undefined,
})
const cluster = new ClusterClient({ runtime, pool, brokers, dialTimeoutMs: 2000, requestTimeoutMs: 5000 })
const state = new StateShell({ runtime, cluster, log, host: name, name, topic, group, sessionMs: Number(session) })

const tell = () => {
  const topics = state.topicIds().map((topicId) => state.view(topicId)?.topic)
  console.log(JSON.stringify({ ...state.status(), isLeader: state.isLeader(), topics }))
}
state.onChange(tell)
state.start()
tell()
for await (const line of createInterface({ input: process.stdin })) {
  state.append({ ...(JSON.parse(line) as StateRecord), proxy: state.proxy })
}
await state.stop()
cluster.close()
