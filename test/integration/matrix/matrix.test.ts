/**
 * The client matrix: every family does the same directly and through the proxy, side by side, and must see the same.
 * `TEST_FAMILIES=java,kafkajs` and `TEST_SCENARIOS=admin` narrow it, `TEST_FULL=1` adds what a quick run leaves out,
 * `TEST_SEED=n` replays a quick run's choice, `TEST_DIRECT_ONLY=1` leaves the proxy out (to check the tests).
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type FamilyName, familyNames, prepareFamily } from '../../../scripts/setup/families.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { ClientProgram } from '../client.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { adminCalls } from './admin.ts'
import { type Abilities, abilities } from './families.ts'
import { groups } from './groups.ts'
import { codecs, tooLarge, transactions, volume } from './records.ts'
import { Route, type Way } from './route.ts'

const full = process.env['TEST_FULL'] === '1'
const directOnly = process.env['TEST_DIRECT_ONLY'] === '1'
const wanted = process.env['TEST_FAMILIES']?.split(',')
const runId = `${process.pid}`

let kafka: SharedKafka
let proxy: Proxy | undefined

function ways(): Way[] {
  const [host, port] = (kafka.bootstrap.split(',')[0] as string).split(':')
  const direct: Way = { name: 'direct', bootstrap: kafka.bootstrap, addressOf: () => `${host}:${port}` }
  if (proxy === undefined) return [direct]
  const { bootstrap, basePort } = proxy
  return [direct, { name: 'proxied', bootstrap, addressOf: (nodeId) => `127.0.0.1:${basePort + nodeId}` }]
}

function scenarios({ assignors, newGroups }: Abilities): [string, (route: Route) => Promise<unknown>][] {
  return [
    ['every codec, key, header, acks', codecs],
    ['20,000 small records and records of 900 KB', volume],
    ['idempotent and transactional producers', transactions],
    ['a record that is too large', tooLarge],
    ['join, share, leave, commit, resume', groups({})],
    ...(newGroups === true ? [['the same with KIP-848', groups({ protocol: 'consumer' })] as const] : []),
    ...(full ? assignors.map((assignor) => [`the same with ${assignor}`, groups({ assignor })] as const) : []),
    ['admin calls', adminCalls],
  ].map(([name, run]) => [name, run] as [string, (route: Route) => Promise<unknown>])
}

const prepared = await Promise.all(
  familyNames
    .filter((family) => wanted === undefined || wanted.includes(family))
    .map(async (family) => ({ family, program: await prepareFamily(family) })),
)

describe('client matrix', { concurrency: 2 }, () => {
  before(async () => {
    kafka = await sharedKafka()
    if (!directOnly) proxy = await startProxy(kafka.bootstrap)
  })
  after(async () => {
    await proxy?.stop()
    await kafka.stop()
  })
  for (const { family, program } of prepared) {
    if ('install' in program) {
      test(family, { skip: `needs: ${program.install}` }, () => {})
      continue
    }
    describe(family, { concurrency: 1 }, () => {
      let client: ClientProgram
      before(() => (client = new ClientProgram(family, program)))
      after(() => client.close())
      for (const [name, run] of scenarios(abilities[family])) {
        if (!name.includes(process.env['TEST_SCENARIOS'] ?? '')) continue
        test(name, { timeout: 600_000 }, () => compare(family, client, run))
      }
    })
  }
})

/** Runs a scenario on both ways at once; what it observes must be equal. */
async function compare(family: FamilyName, client: ClientProgram, run: (route: Route) => Promise<unknown>) {
  const routes = ways().map((way) => new Route(client, abilities[family], `${family}.${runId}`, way))
  const [direct, proxied] = await Promise.all(
    routes.map((route) =>
      run(route).catch((error: unknown) => {
        throw new Error(`${route.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
      }),
    ),
  )
  if (proxied !== undefined) assertSame(direct, proxied, '')
}

/** Like deepEqual, but says only where the first difference is: the values have thousands of rows. */
function assertSame(direct: unknown, proxied: unknown, path: string): void {
  if (!isDeepStrictEqual(direct, proxied) && isObject(direct) && isObject(proxied)) {
    for (const key of new Set([...Object.keys(direct), ...Object.keys(proxied)])) {
      assertSame(direct[key], proxied[key], `${path}/${key}`)
    }
  }
  assert.deepEqual(proxied, direct, `${path}: direct ${JSON.stringify(direct)}, proxied ${JSON.stringify(proxied)}`)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
