/**
 * A Kafka cluster for tests and the demo: real Apache Kafka in KRaft, one node or several, on free loopback ports with
 * its data in a temporary folder. Invariant: everything it started ends with this process, however that ends.
 */
import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { kafkaArtifacts } from './artifacts.ts'
import { removeFolder, temporaryFolder } from './keeper.ts'
import { KafkaNode, kafkaUuid, quickJvm } from './node.ts'
import { freePorts } from './ports.ts'
import type { ExtraListener } from './properties.ts'
import { askBrokers, askCoordinator } from './probe.ts'

export interface KafkaOptions {
  /** How many nodes, each broker and controller (default 1; 3 for a quorum). Node ids count from 1. */
  readonly nodes?: number
  /** Broker settings that win over the harness's own. */
  readonly overrides?: Readonly<Record<string, string>>
  /** More ports of the (only) node, for proxies that pass addresses on unchanged: the broker tells their clients the proxy's. */
  readonly listeners?: readonly ExtraListener[]
  /** Flags of the Java machine (default: quick to start, small). */
  readonly jvm?: readonly string[]
  /** How long the start may take (default 120 s: loaded machines). */
  readonly withinMs?: number
  /** Told what is going on. */
  readonly say?: (line: string) => void
}

export interface KafkaCluster {
  /** `host:port,…` of all nodes. */
  readonly bootstrap: string
  readonly nodes: readonly KafkaNode[]
  /** Starts a node that was stopped or killed, and waits until all running nodes know it. */
  restart(id: number): Promise<void>
  /** Waits until every running node answers and knows all running nodes. */
  ready(): Promise<void>
  /** Kills all nodes and removes their data. */
  stop(): Promise<void>
}

/** Starts a cluster and waits until it serves producers, groups and transactions. */
export async function startKafka(options: KafkaOptions = {}): Promise<KafkaCluster> {
  const { nodes: count = 1, overrides = {}, listeners = [], jvm = quickJvm, withinMs = 120_000, say } = options
  const artifacts = await kafkaArtifacts(say)
  const folder = temporaryFolder('kafka')
  const ports = await freePorts(2 * count)
  const addresses = Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    port: ports[index] as number,
    controllerPort: ports[count + index] as number,
  }))
  const clusterId = kafkaUuid()
  const nodes = addresses.map((address) => {
    const nodeFolder = join(folder, `node-${address.id}`)
    mkdirSync(nodeFolder)
    return new KafkaNode(artifacts, {
      address,
      nodes: addresses,
      clusterId,
      folder: nodeFolder,
      jvm,
      listeners,
      overrides,
    })
  })
  const ready = () => untilReady(nodes, withinMs)
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.kill())) // its data goes too: nothing to shut down in order
    removeFolder(folder)
  }
  try {
    for (const node of nodes) node.start()
    await ready()
  } catch (error) {
    await stop()
    throw error
  }
  const restart = async (id: number) => {
    const node = nodes.find((one) => one.id === id)
    if (node === undefined) throw new Error(`there is no node ${id}`)
    node.start()
    await ready()
  }
  return { bootstrap: nodes.map((node) => `127.0.0.1:${node.port}`).join(','), nodes, restart, ready, stop }
}

/** Polls real answers: a port that is open says nothing yet. */
async function untilReady(nodes: readonly KafkaNode[], withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs
  const started = nodes.filter((node) => node.pid !== undefined)
  let last = 'no answer yet'
  while (Date.now() < deadline) {
    const dead = started.find((node) => node.pid === undefined)
    if (dead !== undefined) throw new Error(`Kafka node ${dead.id} ended while starting\n${dead.tail()}`)
    try {
      if (await allReady(started)) return
      last = 'brokers or coordinators are missing'
    } catch (error) {
      last = error instanceof Error ? error.message : String(error)
    }
    await delay(50)
  }
  const logs = started.map((node) => `node ${node.id}:\n${node.tail(15)}`).join('\n')
  throw new Error(`Kafka is not ready within ${withinMs} ms (${last})\n${logs}`)
}

async function allReady(nodes: readonly KafkaNode[]): Promise<boolean> {
  for (const { port } of nodes) {
    if ((await askBrokers(port)) !== nodes.length) return false
    if (!(await askCoordinator(port, 0)) || !(await askCoordinator(port, 1))) return false
  }
  return true
}
