/**
 * Letting clients go: long polls are answered early, what is in flight is finished, and connections close broker by
 * broker, so that a client sees something like a rolling restart and not all brokers gone at once.
 */
import { apiKeys } from '../protocol/api-table.ts'
import { emptyFetchAnswer } from '../editors/fetch/early-answer.ts'
import type { Connection } from '../pipeline/connection.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** Between the closing of one broker's connections and the next one's: clients reconnect elsewhere meanwhile. */
const BETWEEN_BROKERS_MS = 200
const POLL_MS = 20

/** Resolves when every connection has closed, or at the deadline (what is left is the caller's to close). */
export async function drainConnections(
  runtime: Runtime,
  open: ReadonlySet<Connection>,
  deadlineMs: number,
): Promise<void> {
  const until = runtime.now() + deadlineMs
  const nodeIds = [...new Set([...open].map((connection) => connection.nodeId))].sort((a, b) => b - a)
  for (const nodeId of nodeIds) {
    const group = [...open].filter((connection) => connection.nodeId === nodeId)
    for (const connection of group) letGo(connection)
    const last = nodeId === nodeIds.at(-1)
    if (!last) await pause(runtime, Math.min(BETWEEN_BROKERS_MS, until - runtime.now()))
  }
  while (open.size > 0 && runtime.now() < until) {
    await pause(runtime, POLL_MS)
    for (const connection of [...open]) letGo(connection)
  }
}

/** Also later: a long poll may wait behind a request that had to be finished first. */
function letGo(connection: Connection): void {
  const oldest = connection.order.peek()
  if (
    oldest?.apiKey === apiKeys.Fetch &&
    oldest.stage === 'waiting' &&
    !oldest.abandoned &&
    oldest.kept !== undefined
  ) {
    const answer = emptyFetchAnswer(oldest.kept, oldest.apiVersion)
    if (answer !== undefined) {
      oldest.abandoned = true
      connection.reply(oldest, answer)
    }
  }
  connection.drain()
}

function pause(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => runtime.timer(Math.max(0, ms), resolve))
}
