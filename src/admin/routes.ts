/** What the admin port answers about a running proxy. */
import { type LogLevel, logLevels, type Logger } from '../telemetry/logger.ts'
import type { SlotMeters } from '../telemetry/meters.ts'
import { type LayoutSource, layoutRoutes } from './layout-routes.ts'
import { AdminError, type Reply, type Route } from './router.ts'

/** What the routes ask of the running proxy. */
export interface AdminSource {
  readonly version: string
  readonly meters: SlotMeters
  readonly log: Pick<Logger, 'level'>
  readiness(): { ready: boolean; reasons: string[] }
  nodes(): unknown
  clients(): unknown
  ranges(): unknown
  /** undefined: no topic has `layouts`. */
  readonly layouts: LayoutSource | undefined
  /** Frames that pass, as lines; undefined where the configuration does not allow it. */
  readonly inspect: ((filter: URLSearchParams) => Reply['stream']) | undefined
  metrics(): Promise<{ text: string; type: string }>
}

export function adminRoutes(source: AdminSource): Route[] {
  const routes: Route[] = [
    get('/livez', 'the event loop answers; never depends on Kafka', () => ({ body: { live: true } })),
    get(
      '/readyz',
      'listeners are bound and the brokers known; 503 while stopping; reasons name what does not work',
      () => {
        const { ready, reasons } = source.readiness()
        return { status: ready ? 200 : 503, body: { ready, reasons } }
      },
    ),
    get('/metrics', 'metrics for Prometheus', async () => {
      const { text, type } = await source.metrics()
      return { body: text, type }
    }),
    get('/api/version', 'versions of Headgate and Node', () => ({
      body: { version: source.version, node: process.version },
    })),
    get('/api/nodes', 'addresses: where clients connect, where Headgate connects', () => ({ body: source.nodes() })),
    get('/api/clients', 'client instances and their connections', () => ({ body: source.clients() })),
    get('/api/ranges', 'static key ranges: what each consumer was delivered and what was withheld', () => ({
      body: source.ranges(),
    })),
    {
      method: 'GET',
      path: '/api/tap',
      summary: 'the frames that pass, one JSON line each: ?client=ID&api=Fetch,Produce (headgate inspect reads it)',
      handle: ({ url }) => tap(source, url.searchParams),
    },
    get('/api/latency', 'what the proxy adds and what brokers take, in milliseconds', () => ({
      body: latency(source.meters),
    })),
    get('/api/log-level', 'the log level', () => ({ body: { level: source.log.level } })),
    {
      method: 'PUT',
      path: '/api/log-level',
      summary: 'changes the log level until the next start: {"level": "debug"}',
      handle: ({ body }) => setLogLevel(source.log, body),
    },
    ...layoutRoutes(source.layouts),
  ]
  const index = routes.map(({ method, path, summary }) => ({ method, path, summary }))
  return [get('/', 'this list', () => ({ body: { headgate: source.version, routes: index } })), ...routes]
}

function get(path: string, summary: string, handle: () => Reply | Promise<Reply>): Route {
  return { method: 'GET', path, summary, handle }
}

function latency(meters: SlotMeters): unknown {
  const { proxy, broker } = meters.overall()
  const show = (histogram: typeof proxy) => ({
    count: histogram.count,
    p50: histogram.quantileMs(0.5),
    p99: histogram.quantileMs(0.99),
    max: histogram.quantileMs(1),
  })
  return { unit: 'ms', longPolls: 'not included', proxy: show(proxy), broker: show(broker) }
}

function setLogLevel(log: Pick<Logger, 'level'>, body: unknown): Reply {
  const level = (body as { level?: unknown } | null)?.level
  if (!logLevels.includes(level as LogLevel)) {
    throw new AdminError(400, 'HG_VALUE', 'the level is not known', `send {"level": one of ${logLevels.join(', ')}}`)
  }
  log.level = level as LogLevel
  return { body: { level } }
}

function tap(source: AdminSource, filter: URLSearchParams): Reply {
  const stream = source.inspect?.(filter)
  if (stream === undefined)
    throw new AdminError(403, 'HG_INSPECT_OFF', 'frames are not shown', 'set admin.inspect: true')
  return { body: undefined, stream }
}
