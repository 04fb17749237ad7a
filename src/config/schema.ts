/**
 * Every setting of Headgate: its name, kind, default and description. The editor schema, config/full.yaml, the table in
 * docs/configuration.md, the environment variables and `headgate config` are all made from this file.
 * A key is accepted only if something acts on it.
 */
import { z } from 'zod'
import { formatHostPort, isWildcard } from './address.ts'
import { count, dialMap, duration, host, hostPort, hostPorts, nodeIds, port, refuse, size } from './fields.ts'
import { groups } from './key-ranges.ts'
import { topics } from './layouts.ts'

const int32Max = 2 ** 31 - 1
const defaultBasePort = 19_093

const upstream = z
  .strictObject({
    bootstrap: hostPorts().describe(
      'Kafka brokers to connect to first: a list, or host:port separated by commas. Tried in turn until one answers.',
    ),
    dialTimeout: duration(1).prefault('10s').describe('How long one connection attempt to a broker may take.'),
    metadataRefresh: duration(100)
      .prefault('30s')
      .describe('How often Headgate itself asks for the list of brokers, so that new and moved ones are known early.'),
  })
  .transform(({ dialTimeout, metadataRefresh, ...rest }) => ({
    ...rest,
    dialTimeoutMs: dialTimeout,
    metadataRefreshMs: metadataRefresh,
  }))

const listener = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'is not a listener name\nuse up to 32 of a-z, 0-9 and -')
      .default('default')
      .describe('Name in logs and metrics; each listener has its own.'),
    mode: z
      .enum(['ports', 'loopback'], {
        error: ({ input }) =>
          input === 'sni' ? 'sni is not built yet\nuse ports or loopback' : 'is not a mode\nuse ports or loopback',
      })
      .default('ports')
      .describe(
        'How brokers are told apart. ports: one port per node id. loopback: also a 127.x.y.z address per client instance (Linux, clients on the same host or in the same pod).',
      ),
    bind: host()
      .optional()
      .describe(
        'Address to listen on. Default 127.0.0.1, in the container image 0.0.0.0. Not in loopback mode, which listens on 0.0.0.0 and drops whatever did not come over loopback.',
      ),
    advertise: host()
      .optional()
      .describe(
        'Host name that clients are told to connect to. Default: the bind address, or 127.0.0.1 if that is a wildcard. Not in loopback mode.',
      ),
    basePort: port()
      .default(defaultBasePort)
      .describe('The broker with node id n is reached on port basePort + n, the same after every restart.'),
    bootstrapPort: port().optional().describe('Port that clients put into bootstrap.servers. Default: basePort − 1.'),
    advertisePort: port()
      .optional()
      .describe(
        'Base port that clients are told, where it differs from basePort (a container port published under another number). Default: basePort.',
      ),
    nodeIds: nodeIds()
      .prefault('0-9')
      .describe(
        'Node ids whose ports are bound at start-up, before the brokers are known. Others are bound as they appear.',
      ),
    dial: dialMap()
      .prefault({})
      .describe(
        'Where to connect instead of the address the broker gives for itself: node id → host:port, for brokers that advertise names this host cannot reach.',
      ),
  })
  .transform((value, context) => {
    if (value.mode === 'loopback') {
      for (const key of ['bind', 'advertise'] as const) {
        if (value[key] !== undefined) {
          refuse(context, 'does not go with mode: loopback', `remove ${key}, or use mode: ports`, [key])
        }
      }
    }
    const bind = value.mode === 'loopback' ? '0.0.0.0' : (value.bind ?? '127.0.0.1')
    return {
      ...value,
      bind,
      advertise: value.advertise ?? (isWildcard(bind) ? '127.0.0.1' : bind),
      bootstrapPort: value.bootstrapPort ?? value.basePort - 1,
      advertisePort: value.advertisePort ?? value.basePort,
    }
  })

const admin = z.strictObject({
  bind: hostPort(0)
    .prefault('127.0.0.1:9190')
    .describe('Where /livez, /readyz, /metrics and /api are served; port 0 takes any free one.'),
  allowChanges: z
    .boolean()
    .default(false)
    .describe('Answer calls that change something also when admin.bind is not a loopback address.'),
  inspect: z
    .boolean()
    .default(false)
    .describe('Let `headgate inspect` see the frames that pass, record contents included, over the admin port.'),
})

const limits = z
  .strictObject({
    requestBytes: size(1024, int32Max).prefault('100MiB').describe('Largest request accepted, as on brokers.'),
    responseBytes: size(1024, int32Max)
      .prefault('100MiB')
      .describe('Largest response that Headgate decodes to change it. Others may be as long as the protocol allows.'),
    inFlight: count(1, 100_000)
      .default(1024)
      .describe('Requests of one connection sent and not yet answered; beyond it the client is not read.'),
    bufferedBytes: size(64 * 1024, int32Max)
      .prefault('512KiB')
      .describe('Unsent bytes towards one peer at which the other side is no longer read (back-pressure).'),
    headerTimeout: duration()
      .prefault('10s')
      .describe('How long a request may take from its first byte to a complete header.'),
    progressTimeout: duration()
      .prefault('30s')
      .describe(
        'How long a partial frame may stay without another byte. Time in which Headgate itself pauses does not count.',
      ),
    idleTimeout: duration().prefault('0s').describe('Close connections without traffic after this long; 0s: never.'),
    connections: count(1, 1_000_000).default(10_000).describe('Client connections at a time; more are closed at once.'),
    holdFrames: count(1, 10_000)
      .default(16)
      .describe('Requests of one connection that are read while an earlier one is held.'),
  })
  .transform(({ headerTimeout, progressTimeout, idleTimeout, ...rest }) => ({
    ...rest,
    headerTimeoutMs: headerTimeout,
    progressTimeoutMs: progressTimeout,
    idleTimeoutMs: idleTimeout,
  }))

const log = z.strictObject({
  level: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
  format: z
    .enum(['auto', 'json', 'pretty'])
    .default('auto')
    .describe('auto: pretty on a terminal, JSON lines otherwise.'),
})

const shutdown = z
  .strictObject({
    delay: duration()
      .prefault('5s')
      .describe(
        'After SIGTERM: how long connections are still accepted while /readyz already says 503. Skipped when idle.',
      ),
    grace: duration()
      .prefault('25s')
      .describe(
        'After SIGTERM: the process has exited by then, delay included. Keep it below the grace period of Kubernetes (30s).',
      ),
  })
  .transform(({ delay, grace }, context) => {
    if (delay > grace) refuse(context, 'is longer than shutdown.grace', 'make it shorter, or grace longer', ['delay'])
    return { delayMs: delay, graceMs: grace }
  })

/** The whole configuration. Input: what people write; output: `Config`. */
export const configSchema = z
  .strictObject({
    upstream: upstream.describe('The Kafka cluster behind Headgate.'),
    listeners: z
      .array(listener)
      .min(1, 'is empty\nremove the key for the default listener, or list one')
      .max(32)
      .prefault([{}])
      .describe('Where clients connect. Several listeners advertise different names for the same brokers.'),
    admin: admin.prefault({}).describe('The HTTP port for probes, metrics and the API.'),
    limits: limits.prefault({}).describe('What one client or broker can make Headgate do at most.'),
    log: log.prefault({}).describe('The log, on standard output.'),
    shutdown: shutdown.prefault({}).describe('What happens after SIGTERM.'),
    topics: topics()
      .prefault({})
      .describe(
        'What holds for topics: regular expression of the whole name → {layouts: {partitioner, order, sealAfter, goneAfter, late, stateLoss}}, whose partitions may be added and removed in order (docs/layouts.md). The first that matches holds.',
      ),
    groups: groups()
      .prefault({})
      .describe(
        'What holds for consumer groups: regular expression of the whole group id → {ranges: [{clientId, keys}], gate}: the buckets of the key hash that a consumer gets (docs/key-ranges.md; its commits are refused), and block, position or after 30s for groups that never commit (docs/layouts.md).',
      ),
  })
  .superRefine(checkPorts)

export type Config = z.output<typeof configSchema>
export type ListenerConfig = Config['listeners'][number]
export type LimitsConfig = Config['limits']

function checkPorts(
  config: { listeners: ListenerConfig[]; admin: z.output<typeof admin> },
  context: z.core.$RefinementCtx,
) {
  const taken: { bind: string; port: number; by: string }[] = []
  const claim = (bind: string, port: number, by: string, path: PropertyKey[], fix: string): boolean => {
    const other = taken.find((t) => t.port === port && (t.bind === bind || isWildcard(t.bind) || isWildcard(bind)))
    taken.push({ bind, port, by })
    if (port > 65_535)
      refuse(
        context,
        `puts ${by} at port ${port}, and the last is 65535`,
        'choose a lower basePort or fewer nodeIds',
        path,
      )
    else if (port < 1)
      refuse(context, 'leaves no port for bootstrap', 'choose a higher basePort, or set bootstrapPort', path)
    else if (other) {
      refuse(context, `makes ${by} and ${other.by} both listen on ${formatHostPort({ host: bind, port })}`, fix, path)
    } else return true
    return false
  }
  if (config.admin.bind.port > 0) claim(config.admin.bind.host, config.admin.bind.port, 'admin', ['admin', 'bind'], '')
  const names = new Set<string>()
  config.listeners.forEach((listener, index) => {
    const { name, bind, basePort, bootstrapPort } = listener
    if (names.has(name)) {
      refuse(context, `is used twice: ${name}`, 'give each listener a name of its own', ['listeners', index, 'name'])
    }
    names.add(name)
    const fix = `set basePort (and bootstrapPort) of listener ${name} to free ports`
    const path = ['listeners', index, 'basePort']
    const ok = claim(bind, bootstrapPort, `the bootstrap port of ${name}`, ['listeners', index, 'bootstrapPort'], fix)
    if (ok) listener.nodeIds.every((id) => claim(bind, basePort + id, `node ${id} of ${name}`, path, fix))
  })
}
