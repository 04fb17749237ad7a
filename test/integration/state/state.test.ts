/** Two proxies' state shells as processes against Apache Kafka; the one that leads is killed. */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { after, before, test } from 'node:test'
import type { StateStatus } from '../../../src/state/state.ts'
import type { TopicState } from '../../../src/state/topic-state.ts'
import { type SharedKafka, sharedKafka } from '../../kafka/shared.ts'
import { clientOf } from './client.ts'

/** The shortest that a broker allows by default. */
const sessionMs = 6000
const patienceMs = 40_000

type Told = StateStatus & { readonly isLeader: boolean; readonly topics: readonly TopicState[] }

class ProxyProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, null>
  told: Told | undefined
  #check: () => void = () => undefined

  constructor(...args: string[]) {
    const program = join(import.meta.dirname, 'proxy.ts')
    this.child = spawn(process.execPath, ['--import', 'tsx', program, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      this.told = JSON.parse(line) as Told
      this.#check()
    })
  }

  /** Resolves when what the proxy told last fits; rejects when it does not within the patience. */
  until(what: string, fits: (told: Told) => boolean): Promise<Told> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`not within ${patienceMs} ms: ${what}; told last: ${JSON.stringify(this.told)}`)),
        patienceMs,
      ).unref()
      this.#check = () => {
        if (this.told === undefined || !fits(this.told)) return
        clearTimeout(timer)
        resolve(this.told)
      }
      this.#check()
    })
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exited = new Promise((resolve) => this.child.once('exit', resolve))
    this.child.stdin.end()
    await exited
  }
}

let kafka: SharedKafka
before(async () => (kafka = await sharedKafka()))
after(() => kafka.stop())

test('the fleet on Apache Kafka: topic, registration, a leader, hand-over after kill -9, a clean stop', async () => {
  const name = `state-${process.pid}-${Date.now()}`
  const start = (proxy: string) => new ProxyProcess(kafka.bootstrap, name, `${name}-fleet`, proxy, String(sessionMs))
  const proxies = [start('a'), start('b')]
  const [a, b] = proxies as [ProxyProcess, ProxyProcess]
  const client = await clientOf(kafka.bootstrap)
  try {
    const both = await Promise.all(
      proxies.map((proxy) =>
        proxy.until('both are ready', (told) => told.condition === 'ready' && told.proxies.length === 2),
      ),
    )
    await Promise.all(proxies.map((proxy) => proxy.until('a leader', (told) => told.leader !== undefined)))
    const settings = await client.topicSettings(name, ['cleanup.policy', 'min.compaction.lag.ms'])
    assert.deepEqual(
      settings,
      new Map([
        ['cleanup.policy', 'compact'],
        ['min.compaction.lag.ms', '3600000'],
      ]),
    )
    const [topic] = await client.describeTopics([name])
    assert.equal(topic?.partitions.length, 1)
    await Promise.race(proxies.map((proxy) => proxy.until('one leads', (told) => told.isLeader)))
    const leader = a.told?.isLeader === true ? a : b
    const other = leader === a ? b : a
    leader.child.stdin.write(`${JSON.stringify({ kind: 'topic', topicId: 'T', name: 'orders', count: 3 })}\n`)
    await other.until('the record', (told) => told.topics[0]?.name === 'orders')

    const killed = leader.told?.proxy
    leader.child.kill('SIGKILL')
    await other.until('the hand-over', (told) => told.isLeader)
    const later = await other.until('the expulsion', (told) => told.proxies.every(({ proxy }) => proxy !== killed))
    assert.equal(later.topics[0]?.layouts[0]?.count, 3)
    assert.ok(both.every((told) => told.proxies.some(({ proxy }) => proxy === killed)))

    const third = start('c')
    proxies.push(third)
    await third.until('a third one joins', (told) => told.condition === 'ready' && told.proxies.length === 2)
    await other.stop()
    await third.until('it leads alone', (told) => told.isLeader && told.proxies.length === 1)

    // As it is, more than a broker takes at once (1 MiB): a proxy names every client that wrote.
    const instances = Object.fromEntries(
      Array.from({ length: 50_000 }, (_, i) => [`10.1.${i >> 8}.${i & 255}/app-${i}`, 0]),
    )
    const left = { kind: 'left', topicId: 'T', sinceMs: 0, instances, gone: [], ends: {} }
    third.child.stdin.write(`${JSON.stringify(left)}\n`)
    await third.until('a record with all clients', ({ topics: [orders] }) =>
      Object.values(orders?.left ?? {}).some((said) => Object.keys(said.instances).length === 50_000),
    )
  } finally {
    client.close()
    for (const proxy of proxies) await proxy.stop()
  }
})
