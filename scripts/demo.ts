/**
 * The demo: a Kafka, Headgate in front of it as the real binary, records through it, and then everything stays up to be
 * looked at. Whatever it starts ends with it, also when it is killed (scripts/kafka/guard.mjs).
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseHostPort } from '../src/config/address.ts'
import { openSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, temporaryFolder } from './kafka/keeper.ts'
import { freePorts } from './kafka/ports.ts'
import { builtMain } from './setup/build.ts'
import { findLeftover, forget, remember, startOf } from './demo/leftover.ts'
import { sendAndRead } from './demo/traffic.ts'
import { startUpstream, upstreamKinds, type UpstreamKind } from './demo/upstream.ts'

const usage = `npm run demo -- [options]
npm run demo -- ranges  two consumers share one partition by static key ranges (docs/key-ranges.md)
npm run demo -- layouts a topic grows under load, without Headgate and in order through it (docs/layouts.md)
  --upstream HOST:PORT  a Kafka cluster of yours, instead of one started here
  --kafka KIND          start this kind only: java, docker or fake (default: the first that works)
  --once                end after the check instead of waiting for Ctrl-C; exit code 0 if all went well
  --name NAME           to run several at the same time (default: demo)
`
const say = (line: string) => console.log(line)

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        upstream: { type: 'string' },
        kafka: { type: 'string' },
        once: { type: 'boolean', default: false },
        name: { type: 'string', default: 'demo' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.kafka !== undefined && !upstreamKinds.includes(values.kafka as UpstreamKind)) {
      throw new Error(`--kafka is one of ${upstreamKinds.join(', ')}`)
    }
    const bad = values.upstream?.split(',').find((address) => parseHostPort(address.trim()) === undefined)
    if (bad !== undefined) throw new Error(`--upstream is host:port, for example kafka-1:9092, not ${bad || 'nothing'}`)
    if (!/^[a-z0-9-]+$/.test(values.name)) throw new Error('--name may hold a-z, 0-9 and -')
    return values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

const shows: Readonly<Record<string, () => Promise<unknown>>> = {
  ranges: () => import('./demo/ranges.ts'),
  layouts: () => import('./demo/layouts.ts'),
}
const show = shows[process.argv[2] ?? '']
if (show !== undefined) {
  await show()
  process.exit()
}

const options = readOptions()
if (options.help) {
  console.log(usage)
  process.exit(0)
}

/** Undone in reverse order at the end. */
const undo: (() => Promise<void> | void)[] = []
let endingSince: number | undefined
/** npm passes on what the terminal has already sent to everybody: the same again at once is no second wish. */
const echoMs = 500

async function end(code: number): Promise<never> {
  endingSince ??= performance.now()
  for (const step of undo.reverse()) {
    try {
      await step()
    } catch (error) {
      console.error(`while cleaning up: ${(error as Error).message}`)
    }
  }
  process.exit(code)
}

// Whoever was reading is gone: `npm run demo | head`, a closed terminal.
process.stdout.on('error', () => endingSince === undefined && void end(1))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (endingSince !== undefined) {
      if (performance.now() - endingSince > echoMs) process.exit(1)
      return
    }
    say('\nstopping …')
    void end(0)
  })
}

/** A cluster that answers does so in a second or two. */
const readyWithinMs = 15_000

interface Node {
  listener: string
  nodeId: number
  bind: string
  advertised: string
  dial?: string
}

async function main(): Promise<void> {
  const leftover = findLeftover(options.name)
  if (leftover === 'cleared') say('found what a killed demo had left behind, and removed it')
  else if (leftover) {
    console.error(
      `a demo is running already (process ${leftover.running.pid}, ${leftover.running.admin}); stop it with Ctrl-C there`,
    )
    process.exit(1)
  }
  const main = await builtMain(say)
  const container = `headgate-${options.name}`
  const upstream = await startUpstream({
    upstream: options.upstream ?? (process.env['UPSTREAM_BOOTSTRAP'] || undefined),
    only: options.kafka as UpstreamKind | undefined,
    containerName: container,
    say,
  })
  undo.push(() => upstream.stop())
  say(`Kafka: ${upstream.what}, at ${upstream.bootstrap}`)

  const proxy = await startProxy(main, upstream.bootstrap)
  const state = {
    pid: process.pid,
    startedAt: startOf(process.pid),
    container: upstream.what.includes(container) ? container : '',
  }
  remember(options.name, { ...state, admin: proxy.admin, proxyPid: proxy.pid, proxyStartedAt: startOf(proxy.pid) })
  undo.push(() => forget(options.name))

  const topic = upstream.foreign ? `headgate-demo-${process.pid}` : 'headgate-demo'
  const traffic = await sendAndRead(proxy.bootstrap, topic, upstream.foreign)
  undo.push(() => traffic.stop())
  await report(proxy, traffic, topic)
  if (options.once) return end(0)
  say('Left running; Ctrl-C stops everything.')
}

interface DemoProxy {
  readonly pid: number
  readonly bootstrap: string
  readonly admin: string
  readonly log: string
}

async function startProxy(main: string, upstream: string): Promise<DemoProxy> {
  const [bootstrapPort = 0, basePort = 0] = await freePorts(12)
  const [adminPort = 0] = await freePorts(1)
  const log = join(temporaryFolder('demo'), 'headgate.log')
  const file = openSync(log, 'w')
  const settings = [
    ['listeners[0].bootstrapPort', bootstrapPort],
    ['listeners[0].basePort', basePort],
    ['admin.bind', `127.0.0.1:${adminPort}`],
    ['shutdown.delay', '0s'],
  ].flatMap(([key, value]) => ['--set', `${key}=${value}`])
  const args = [main, 'serve', '--upstream', upstream, ...settings]
  const child = keep(process.execPath, args, { stdio: ['ignore', file, file] })
  let ended = false
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()))
  void closed.then(() => (ended = true))
  undo.push(async () => {
    child.kill('SIGTERM')
    await closed
  })
  const admin = `http://127.0.0.1:${adminPort}`
  for (const deadline = performance.now() + readyWithinMs; ; await delay(50)) {
    if (ended) throw new Error(`Headgate ended:\n${readFileSync(log, 'utf8')}`)
    const missing = await missingAt(admin)
    if (missing === '') break
    if (performance.now() > deadline) throw new Error(`Headgate is not ready: ${missing}`)
  }
  return { pid: child.pid ?? 0, bootstrap: `127.0.0.1:${bootstrapPort}`, admin, log }
}

/** What Headgate still lacks to be ready; empty for nothing. */
async function missingAt(admin: string): Promise<string> {
  try {
    const answer = await fetch(`${admin}/readyz`)
    return answer.ok ? '' : ((await answer.json()) as { reasons: string[] }).reasons.join('; ')
  } catch (error) {
    return `its admin port does not answer (${(error as Error).message})`
  }
}

async function report(
  proxy: DemoProxy,
  traffic: { records: number; partitions: number; seconds: number },
  topic: string,
) {
  const json = async (path: string): Promise<unknown> => (await fetch(`${proxy.admin}${path}`)).json()
  const nodes = (await json('/api/nodes')) as Node[]
  const latency = (await json('/api/latency')) as { proxy: { p50: number; p99: number }; broker: { p50: number } }
  const { records, partitions, seconds } = traffic
  say('')
  say(`  give clients           bootstrap.servers=${proxy.bootstrap}`)
  for (const { nodeId, bind, advertised, dial } of nodes) {
    if (nodeId >= 0 && dial !== undefined)
      say(`  node ${String(nodeId).padEnd(17)} ${bind}, advertised ${advertised} → ${dial}`)
  }
  say('')
  say(`  ${records} records sent to ${partitions} partitions of ${topic} and read back in ${seconds.toFixed(1)} s:`)
  say('  none lost, none twice, the order of every key kept')
  say(
    `  added by Headgate      ${latency.proxy.p50} ms in the median, ${latency.proxy.p99} ms at the 99th percentile, first requests included`,
  )
  say(`  taken by the broker    ${latency.broker.p50} ms in the median (long polls not counted)`)
  for (const [api, count] of await requestsByApi(proxy.admin)) say(`  ${api.padEnd(22)} ${count} requests`)
  say('')
  if (options.once) return
  say('  try')
  for (const path of ['/api/clients', '/api/nodes', '/metrics', '/readyz']) say(`    curl ${proxy.admin}${path}`)
  say(`    kcat -b ${proxy.bootstrap} -C -t ${topic} -o end      (or any other Kafka client)`)
  say(`    the log of Headgate: ${proxy.log}`)
  say('')
}

/** Requests by API, most frequent first, over all nodes. */
async function requestsByApi(admin: string): Promise<[string, number][]> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const sums = new Map<string, number>()
  for (const [, api = '', value] of text.matchAll(/^headgate_requests_total\{.*api="(\w+)".*\} (\d+)$/gm)) {
    sums.set(api, (sums.get(api) ?? 0) + Number(value))
  }
  return [...sums].sort((a, b) => b[1] - a[1])
}

main().catch((error: unknown) => {
  if (endingSince !== undefined) return
  console.error(`the demo failed: ${(error as Error).message}`)
  void end(1)
})
