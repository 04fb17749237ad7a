/**
 * A topic that grows under load through three proxies: `npm run bench -- expansion [--rate 10000] [--seconds 5]`. First to
 * a multiple of its partitions, where no batch of the old layout is held; then to a count that is none, where every
 * producer waits for its cut. What clients wait for is read off the proxies' taps, how long Headgate let producers wait for
 * their cuts off the proxies' logs, and what was refused off their metrics: a client that is refused comes back when its
 * own back-off says so, which is shown beside it. It fails only where the order of a key is broken or a new partition is
 * not delivered.
 */
import { Kafka, logLevel } from 'kafkajs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startKafka } from '../../scripts/kafka/cluster.ts'
import { type Proxy, startProxy } from '../integration/proxy.ts'
import { Load } from './expansion/load.ts'
import { begunBetween, type Taken, Taps } from './expansion/taps.ts'
import { median } from './report.ts'

const { values } = parseArgs({
  options: { rate: { type: 'string', default: '10000' }, seconds: { type: 'string', default: '5' } },
})
const [rate, steadyMs] = [Number(values.rate), Number(values.seconds) * 1000]
const topic = 'bench-grow'
const producersEach = 4
const deliveredWithinMs = 60_000
const settledWithinMs = 180_000
const say = (line: string): void => console.error(line)

/** What a change must keep to. */
const limits = { metadataMs: 1000, cutMs: 1000, deliveredMs: 15_000 }

interface Change {
  readonly from: number
  readonly to: number
  readonly any: boolean
  readonly askedAt: number
  readonly openAt: number
  readonly deliveredMs: number
  readonly sealedMs: number
  /** Refused Produce batches by reason, over all proxies, during the change. */
  readonly refused: ReadonlyMap<string, number>
  /** Per producer, how long its first batch by the new layout had to wait until its cut was in force. */
  readonly cutWaits: readonly { ms: number }[]
}

async function json<T>(url: string, body?: object): Promise<T> {
  const answer = await fetch(
    url,
    body === undefined
      ? {}
      : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  )
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

async function until(what: string, withinMs: number, met: () => Promise<boolean> | boolean): Promise<number> {
  const from = performance.now()
  while (!(await met())) {
    if (performance.now() - from > withinMs) throw new Error(`not within ${withinMs / 1000} s: ${what}`)
    await delay(50)
  }
  return performance.now() - from
}

async function isSettled({ admin }: Proxy, count: number): Promise<boolean> {
  const rows = await json<{ topic: string; phase: string; partitions?: number }[]>(`${admin}/api/topics`).catch(
    () => [],
  )
  return rows.some((row) => row.topic === topic && row.phase === 'settled' && row.partitions === count)
}

/** A counter by its reason, over all proxies. */
async function byReason(proxies: readonly Proxy[], name: string): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  for (const text of await Promise.all(proxies.map((proxy) => proxy.metrics())))
    for (const [, reason = '', value] of text.matchAll(new RegExp(`^${name}\\{.*reason="([^"]*)".*\\} (\\d+)$`, 'gm')))
      sums.set(reason, (sums.get(reason) ?? 0) + Number(value))
  return sums
}

interface LogLine {
  readonly time: string
  readonly msg: string
  readonly waitedMs?: number
}

/** Cuts that came into force since then, as the proxies' logs tell. */
function cutWaitsSince(proxies: readonly Proxy[], from: number): { ms: number }[] {
  return proxies
    .flatMap((proxy) => proxy.tail(Infinity).split('\n'))
    .filter((line) => line.includes('its cut is in force'))
    .map((line) => JSON.parse(line) as LogLine)
    .filter(({ time }) => Date.parse(time) >= from)
    .map(({ waitedMs = NaN }) => ({ ms: waitedMs }))
}

async function grow(proxies: readonly Proxy[], load: Load, from: number, to: number, any: boolean): Promise<Change> {
  const [proxy] = proxies as [Proxy]
  const refusedBefore = await byReason(proxies, 'headgate_layout_refused_total')
  const askedAt = Date.now()
  await json(`${proxy.admin}/api/topics/${topic}/expand`, { to, any })
  const openAt = Date.now()
  say(`${from} → ${to}: open after ${openAt - askedAt} ms`)
  const fresh = Array.from({ length: to - from }, (_, i) => from + i)
  const { first } = load.delivery
  await until(`records of partitions ${fresh.join(', ')}`, deliveredWithinMs, () => fresh.every((p) => first.has(p)))
  const deliveredMs = Math.max(...fresh.map((p) => (first.get(p) ?? 0) - openAt))
  say(`${from} → ${to}: every new partition delivered ${deliveredMs} ms after that`)
  const settled = async () => (await Promise.all(proxies.map((one) => isSettled(one, to)))).every(Boolean)
  await until(`the seal of ${to}`, settledWithinMs, settled)
  const sealedAt = Date.now()
  const producers = new Set(load.sends.map(({ clientId }) => clientId))
  const since = (): number => new Set(begunBetween(load.sends, sealedAt, Infinity).map(({ clientId }) => clientId)).size
  await until('a send of every producer since', deliveredWithinMs, () => since() === producers.size)
  const refused = await byReason(proxies, 'headgate_layout_refused_total')
  for (const [reason, before] of refusedBefore) refused.set(reason, (refused.get(reason) ?? 0) - before)
  const cutWaits = cutWaitsSince(proxies, askedAt)
  return { from, to, any, askedAt, openAt, deliveredMs, sealedMs: sealedAt - openAt, refused, cutWaits }
}

function quantiles(taken: readonly Pick<Taken, 'ms'>[]): string {
  const ms = taken.map((one) => one.ms).sort((a, b) => a - b)
  const at = (share: number): string => (ms[Math.min(ms.length - 1, Math.floor(share * ms.length))] ?? NaN).toFixed(1)
  return `median ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms of ${ms.length}`
}

/** Per producer the longest time that one of its requests took. */
function longestEach(taken: readonly Taken[]): Pick<Taken, 'ms'>[] {
  const longest = new Map<string, number>()
  for (const { clientId, ms } of taken) longest.set(clientId, Math.max(longest.get(clientId) ?? 0, ms))
  return Array.from(longest.values(), (ms) => ({ ms }))
}

function judge(what: string, measuredMs: number, limitMs: number): void {
  console.log(`  ${measuredMs <= limitMs ? 'met' : 'NOT met'}: ${what} ${measuredMs.toFixed(0)} ms, at most ${limitMs}`)
}

function report(change: Change, taps: Taps, load: Load): void {
  const { from, to, any, askedAt, openAt, deliveredMs, sealedMs, refused, cutWaits } = change
  const produce = taps.of('Produce', (clientId) => clientId.startsWith('producer'))
  const sealedAt = openAt + sealedMs
  const during = begunBetween(produce, askedAt, sealedAt)
  const sends = begunBetween(load.sends, askedAt, sealedAt)
  const metadata = begunBetween(taps.of('Metadata'), askedAt, openAt)
  console.log(`${from} → ${to}${any ? ', with a cut' : ''}`)
  console.log(`  Produce before: ${quantiles(begunBetween(produce, askedAt - steadyMs, askedAt))}`)
  console.log(`  Produce until the seal: ${quantiles(during)}`)
  console.log(`  longest Produce of each producer: ${quantiles(longestEach(during))}`)
  console.log(`  send() before: ${quantiles(begunBetween(load.sends, askedAt - steadyMs, askedAt))}`)
  console.log(`  send() until the seal: ${quantiles(sends)}`)
  console.log(`  longest send() of each producer: ${quantiles(longestEach(sends))}`)
  console.log(`  Metadata asked for before it was open: ${quantiles(metadata)}`)
  const reasons = Array.from(refused).filter(([, count]) => count > 0)
  console.log(`  refused, to come again: ${reasons.map(([why, count]) => `${why} ${count}`).join(', ') || 'nothing'}`)
  if (any) console.log(`  producers waited for their cuts: ${quantiles(cutWaits)}`)
  console.log(`  sealed ${sealedMs} ms after it was open`)
  judge('Metadata held, median', median(metadata.map(({ ms }) => ms)), limits.metadataMs)
  if (any) judge('a producer waits for its cut, median', median(cutWaits.map(({ ms }) => ms)), limits.cutMs)
  judge('new partitions delivered after', deliveredMs, limits.deliveredMs)
}

async function main(): Promise<void> {
  const kafka = await startKafka({ say })
  const more = `log: {level: debug}\ntopics:\n  '${topic}': {layouts: {}}\n`
  const proxies: Proxy[] = []
  const taps = new Taps()
  const load = new Load(topic)
  try {
    const admin = new Kafka({ brokers: kafka.bootstrap.split(','), logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 3 }] })
    await admin.disconnect()
    for (let i = 0; i < 3; i++) proxies.push(await startProxy(kafka.bootstrap, { more, inspect: true }))
    for (const { admin: url } of proxies) await taps.listen(url, ['Produce', 'Metadata'])
    for (const [at, { bootstrap }] of proxies.entries()) {
      for (let i = 0; i < producersEach; i++)
        await load.produce(bootstrap, `producer-${at}-${i}`, rate / producersEach / proxies.length)
      await load.ask(bootstrap, `asker-${at}`)
      await load.consume(bootstrap, `consumer-${at}`, 'bench-grow-group')
    }
    await until('the topic met by every proxy', 30_000, async () =>
      (await Promise.all(proxies.map((p) => isSettled(p, 3)))).every(Boolean),
    )
    await until('records of every partition', deliveredWithinMs, () => load.delivery.first.size === 3)
    await delay(steadyMs)
    const changes = [await grow(proxies, load, 3, 6, false)]
    await delay(steadyMs)
    changes.push(await grow(proxies, load, 6, 8, true))
    for (const change of changes) report(change, taps, load)
    const { disordered, count } = load.delivery
    console.log(`${load.sent} records sent, ${count} delivered, ${disordered} out of order`)
    process.exitCode = disordered > 0 ? 1 : 0
  } finally {
    await load.stop()
    await taps.stop()
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await kafka.stop()
  }
}

await main()
