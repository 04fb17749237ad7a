/**
 * Topics that the state log knows and the cluster has not had for a while: the log may forget them. Not at once, since
 * brokers learn of topics one after the other, and a list of topics leaves out what its reader may not see: so each is
 * asked for by name before it counts as gone.
 */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { State } from '../../../state/state.ts'

/** Longer than clients keep Metadata, so that nobody uses the id any more. */
export const GONE_AFTER_MS = 15 * 60_000
/** Asked for after one list. */
const ASKED_MAX = 20

export class GoneTopics {
  private readonly state: State
  private readonly cluster: Cluster
  /** Topic id → when it was missing first. */
  private readonly since = new Map<string, number>()
  private readonly gone = new Set<string>()

  constructor(state: State, cluster: Cluster) {
    this.state = state
    this.cluster = cluster
  }

  has(topicId: string): boolean {
    return this.gone.has(topicId)
  }

  /** All topics of the cluster were listed. Never rejects. */
  async listed(ids: ReadonlySet<string>, nowMs: number): Promise<void> {
    const known = new Set(this.state.topicIds())
    for (const topicId of this.since.keys()) if (ids.has(topicId) || !known.has(topicId)) this.since.delete(topicId)
    for (const topicId of this.gone) if (!this.since.has(topicId)) this.gone.delete(topicId)
    for (const topicId of known) if (!ids.has(topicId) && !this.since.has(topicId)) this.since.set(topicId, nowMs)
    const due = [...this.since].filter(([topicId, ms]) => nowMs - ms >= GONE_AFTER_MS && !this.gone.has(topicId))
    for (const [topicId] of due.slice(0, ASKED_MAX)) await this.confirm(topicId, nowMs)
  }

  private async confirm(topicId: string, nowMs: number): Promise<void> {
    const name = this.state.view(topicId)?.topic.name
    if (name === undefined) return
    const found = await this.cluster.describeTopics([name]).catch(() => undefined)
    if (found !== undefined && found.every((topic) => topic.topicId !== topicId)) this.gone.add(topicId)
    // Not to be asked, or there after all: others come first now.
    else this.since.set(topicId, nowMs)
  }
}
