/**
 * Crosses between families: what one produced, through the proxy or not, another reads the other way round, on a cluster
 * of three brokers whose partitions are spread over all of them, in both ways of addressing. A quick run takes a few
 * crosses, chosen by a printed seed (`TEST_SEED`); `TEST_FULL=1` takes all.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { canRunKafka } from '../../../scripts/kafka/artifacts.ts'
import { type KafkaCluster, startKafka } from '../../../scripts/kafka/cluster.ts'
import { type FamilyName, familyNames, prepareFamily } from '../../../scripts/setup/families.ts'
import { ClientProgram } from '../client.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { abilities } from './families.ts'
import { acknowledgedOf, assertDelivered, isEvent, rowsOf } from './observe.ts'

const full = process.env['TEST_FULL'] === '1'
const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const quickCrosses = 16
const partitions = 6
const perCodec = 40
const timestamp = 1_700_000_000_000

type WayName = 'direct' | 'ports' | 'loopback'

interface Cross {
  readonly from: FamilyName
  readonly via: WayName
  readonly to: FamilyName
  readonly back: WayName
}

const prepared = new Map(
  await Promise.all(familyNames.map(async (family) => [family, await prepareFamily(family)] as const)),
)
const present = familyNames.filter((family) => !('install' in (prepared.get(family) ?? { install: '' })))

/** Every pair of families, each with one way there and one back, at least one of them through the proxy. */
function allCrosses(): Cross[] {
  const ways: [WayName, WayName][] = [
    ['ports', 'direct'],
    ['direct', 'loopback'],
    ['loopback', 'ports'],
    ['ports', 'ports'],
  ]
  const pairs = present.flatMap((from) => present.map((to) => [from, to] as const))
  return pairs.map(([from, to], index) => {
    const [via, back] = ways[index % ways.length] as [WayName, WayName]
    return { from, via, to, back }
  })
}

/** A part of the crosses in which every family is seen at least as producer or consumer, if it is large enough. */
function chosen(): Cross[] {
  const all = allCrosses()
  if (full || all.length <= quickCrosses) return all
  return (
    fc.sample(fc.shuffledSubarray(all, { minLength: quickCrosses, maxLength: quickCrosses }), {
      seed,
      numRuns: 1,
    })[0] ?? []
  )
}

const skip = canRunKafka() ? false : 'needs: apt-get install openjdk-17-jdk maven'

describe(`crosses of families on three brokers (TEST_SEED=${seed})`, { skip, concurrency: 2 }, () => {
  let kafka: KafkaCluster
  const proxies: Proxy[] = []
  const bootstraps: Record<WayName, string> = { direct: '', ports: '', loopback: '' }
  const clients = new Map<FamilyName, ClientProgram>()

  before(async () => {
    kafka = await startKafka({ nodes: 3 })
    bootstraps.direct = kafka.bootstrap
    for (const mode of ['ports', 'loopback'] as const) {
      if (mode === 'loopback' && process.platform !== 'linux') continue
      const proxy = await startProxy(kafka.bootstrap, { mode })
      proxies.push(proxy)
      bootstraps[mode] = proxy.bootstrap
    }
  })
  after(async () => {
    await Promise.all([...clients.values()].map((client) => client.close()))
    const codes = await Promise.all(proxies.map((proxy) => proxy.stop()))
    await kafka.stop()
    assert.deepEqual(
      codes,
      codes.map(() => 0),
      'the proxy must end with 0 on SIGTERM',
    )
  })

  function client(family: FamilyName): ClientProgram {
    const program = prepared.get(family)
    if (program === undefined || 'install' in program) throw new Error(`${family} is missing`)
    const running = clients.get(family) ?? new ClientProgram(family, program)
    clients.set(family, running)
    return running
  }

  for (const [number, cross] of chosen().entries()) {
    const { from, via, to, back } = cross
    test(`${from} (${via}) → ${to} (${back})`, { timeout: 400_000 }, async () => {
      const topic = `cross.${process.pid}.${number}`
      const [there, here] = [bootstraps[via], bootstraps[back]]
      await createTopic(client(from), there, topic)
      const codecs = abilities[from].codecs.filter((codec) => abilities[to].codecs.includes(codec))
      const sent = []
      for (const codec of codecs) {
        const records = { codec, producer: codec, count: perCodec, partitions, headers: 2, timestamp, idempotent: true }
        sent.push(...acknowledgedOf(await client(from).run({ cmd: 'produce', bootstrap: there, topic, ...records })))
      }
      const events = await client(to).run({
        cmd: 'consume',
        bootstrap: here,
        topics: [topic],
        group: topic,
        count: sent.length,
        commit: 'end',
      })
      assertDelivered(sent, rowsOf(events.filter(isEvent('delivered'))))
      assert.equal(sent.length, codecs.length * perCodec)
    })
  }
})

/** Creates the topic and waits until all leaders serve it (see Route.createTopic). */
async function createTopic(client: ClientProgram, bootstrap: string, topic: string): Promise<void> {
  const admin = (op: string) => client.run({ cmd: 'admin', bootstrap, op, topic, partitions })
  const created = await admin('createTopic')
  assert.equal(created.at(-1)?.ok, true, JSON.stringify(created))
  for (let attempt = 0; ; attempt++) {
    const offsets = (await admin('endOffsets')).find(isEvent('result'))?.result
    if (Array.isArray(offsets) && offsets.length === partitions) return
    assert.ok(attempt < 600, `${topic} is not served: ${JSON.stringify(offsets)}`)
    await delay(50)
  }
}
