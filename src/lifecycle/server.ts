/**
 * The process around the proxy: log, metrics, admin port, signals. Starts all of it in an order in which a port that is
 * taken is one clear message, and runs until a signal has been dealt with.
 */
import type { AdminServer } from '../admin/server.ts'
import { describeListenError } from './start-error.ts'
import { packageVersion } from './version.ts'
import { formatHostPort } from '../config/address.ts'
import { groupRuleLines, topicRuleLines } from '../config/rules.ts'
import type { Config } from '../config/schema.ts'
import { nodeRuntime } from '../runtime/node-runtime.ts'
import { createLogger, type Logger } from '../telemetry/logger.ts'
import { SlotMeters } from '../telemetry/meters.ts'
import { type RunningProxy, startProxy } from './proxy.ts'
import { tapLines } from './tap-lines.ts'
import { installShutdown, type Shutdown } from './shutdown.ts'

/**
 * Runs the proxy; resolves with the exit code. Rejects with `StartError` if a port cannot be bound.
 * @param warnings about the configuration, for the log
 */
export async function serve(config: Config, warnings: readonly string[] = []): Promise<number> {
  const log = await createLogger(config.log)
  for (const warning of warnings) log.warn({}, `configuration: ${warning}`)
  dieLoudly(log)
  const meters = new SlotMeters()
  try {
    const proxy = await startProxy(config, { runtime: await nodeRuntime(), log, meters })
    const shutdown = installShutdown(
      {
        activeConnections: () => proxy.connections,
        drain: (deadlineMs) => proxy.drain(deadlineMs),
        close: () => proxy.close(),
      },
      { ...config.shutdown, log, signals: process, exit: (code) => exitNow(log, code) },
    )
    const readiness = () => (shutdown.started ? { ready: false, reasons: ['stopping'] } : proxy.readiness())
    const admin = await openAdmin(config, { log, meters, proxy, readiness }).catch(async (error: unknown) => {
      await proxy.close()
      throw error
    })
    announceStart(log, config, proxy, admin)
    announceReady(log, proxy, shutdown)
    const code = await shutdown.done
    await admin.close()
    return code
  } catch (error) {
    throw describeListenError(error, config)
  } finally {
    await log.close()
  }
}

interface AdminParts {
  readonly log: Logger
  readonly meters: SlotMeters
  readonly proxy: RunningProxy
  readonly readiness: () => { ready: boolean; reasons: string[] }
}

async function openAdmin(config: Config, { log, meters, proxy, readiness }: AdminParts): Promise<AdminServer> {
  const [{ startAdmin }, { adminRoutes }] = await Promise.all([
    import('../admin/server.ts'),
    import('../admin/routes.ts'),
  ])
  const version = packageVersion()
  const registry = import('../telemetry/metrics.ts').then(({ createRegistry }) =>
    createRegistry(meters, { version, node: process.version }, () => readiness().ready),
  )
  const routes = adminRoutes({
    version,
    meters,
    log,
    readiness,
    nodes: () => proxy.nodes(),
    clients: () => proxy.clients(),
    ranges: () => proxy.ranges(),
    layouts: proxy.layouts,
    inspect: config.admin.inspect ? (filter) => tapLines(proxy.tap, filter, Date.now) : undefined,
    metrics: async () => ({ text: await (await registry).metrics(), type: (await registry).contentType }),
  })
  return startAdmin({
    ...config.admin.bind,
    allowChanges: config.admin.allowChanges,
    routes,
    onError: (error, path) => log.error({ err: error, path }, 'admin request failed'),
  })
}

/** The table of addresses, one line each: what a client puts in, where it arrives. */
function announceStart(log: Logger, config: Config, proxy: RunningProxy, admin: AdminServer): void {
  const upstream = config.upstream.bootstrap.map(formatHostPort).join(',')
  for (const { listener, mode, nodeId, bind, advertised } of proxy.nodes()) {
    if (nodeId !== -1) continue
    const fields = { listener, mode, bind, advertised }
    log.info(fields, `bootstrap → ${upstream}, listening on ${bind}: give clients bootstrap.servers=${advertised}`)
  }
  for (const line of topicRuleLines(config)) log.info({}, `topics with layouts: ${line}`)
  for (const line of groupRuleLines(config)) log.info({}, `consumer groups: ${line}`)
  const url = `http://${formatHostPort({ host: admin.host, port: admin.port })}`
  log.info(
    { admin: url, version: packageVersion(), pid: process.pid },
    `admin on ${url}: /readyz /metrics /api/clients`,
  )
}

const readyPollMs = 100
const notReadyLogMs = 10_000

/** Says when the brokers are known, and until then from time to time why not. */
function announceReady(log: Logger, proxy: RunningProxy, shutdown: Shutdown): void {
  let sinceLogMs = 0
  const timer = setInterval(() => {
    const { ready, reasons } = proxy.readiness()
    if (ready || shutdown.started) {
      clearInterval(timer)
      if (ready && !shutdown.started) announceNodes(log, proxy)
      return
    }
    sinceLogMs += readyPollMs
    if (sinceLogMs < notReadyLogMs) return
    sinceLogMs = 0
    log.warn({ reasons }, `not ready: ${reasons.join('; ')}`)
  }, readyPollMs)
  timer.unref()
}

function announceNodes(log: Logger, proxy: RunningProxy): void {
  for (const { listener, nodeId, bind, advertised, dial } of proxy.nodes()) {
    if (nodeId === -1 || dial === undefined) continue
    const fields = { listener, node: nodeId, dial, bind, advertised }
    log.info(fields, `node ${nodeId} → ${dial}, listening on ${bind}, advertised ${advertised}`)
  }
  log.info({}, 'ready')
}

/** A bug that nobody caught ends the process: state may be half changed, and a restart is quick. */
function dieLoudly(log: Logger): void {
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'internal error: exiting')
    exitNow(log, 1)
  })
}

function exitNow(log: Logger, code: number): void {
  void log.close().then(() => process.exit(code))
}
