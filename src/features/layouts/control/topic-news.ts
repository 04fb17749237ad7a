/**
 * Log lines about the changes of a topic: one for each step that the state shows, at every proxy, so that each log tells
 * the whole story. What happened before this proxy looked for the first time is no news, but for what is still under way.
 */
import { currentLayout, type Layout, type TopicState } from '../../../state/topic-state.ts'
import type { Log } from '../../../telemetry/log.ts'

export class TopicNews {
  private readonly log: Log
  private last: TopicState | undefined

  constructor(log: Log) {
    this.log = log
  }

  look(topic: TopicState): void {
    const { last } = this
    if (topic === last) return
    this.last = topic
    this.proposal(topic, last)
    if (last === undefined) return
    this.aborted(topic, last)
    for (const layout of topic.layouts) {
      const before = last.layouts.find(({ epoch }) => epoch === layout.epoch)
      if (before === undefined) this.opened(topic, layout)
      this.announced(topic, layout, before)
      if (layout.seal !== undefined && before?.seal === undefined) this.sealed(topic, layout)
    }
  }

  private proposal(topic: TopicState, last: TopicState | undefined): void {
    const { proposal, name } = topic
    if (proposal === undefined) return
    const { id, change, to, gates, proxy: askedAt } = proposal
    const before = last?.proposal?.id === id ? last.proposal : undefined
    const fields = { topic: name, change, from: currentLayout(topic).count, to }
    if (before === undefined)
      this.log.info({ ...fields, gates, askedAt }, 'a change begins: its partitions are created, and hidden')
    if (proposal.preparingAt !== undefined && before?.preparingAt === undefined)
      this.log.info(fields, 'preparing: Metadata of the topic waits until every proxy is ready')
  }

  private aborted({ name, aborted }: TopicState, last: TopicState): void {
    if (aborted === undefined || aborted.proposal === last.aborted?.proposal) return
    const { change, to, reason } = aborted
    this.log.warn({ topic: name, change, to, reason }, 'the change was aborted, and nothing was changed for clients')
  }

  private opened({ name }: TopicState, { epoch, count, change, gates }: Layout): void {
    const fields = { topic: name, change, epoch, partitions: count, gates }
    if (change !== 'met') this.log.info(fields, 'open: the new layout is in force')
  }

  private announced({ name }: TopicState, layout: Layout, before: Layout | undefined): void {
    const { epoch, count: partitions, announcedAt, isLive } = layout
    const fields = { topic: name, epoch, partitions }
    if (announcedAt !== undefined && before?.announcedAt === undefined)
      this.log.info(fields, 'the smaller count is shown to clients that start')
    if (isLive === true && before?.isLive !== true)
      this.log.info(fields, 'the smaller count is shown to living clients too')
  }

  private sealed({ name }: TopicState, { epoch, seal, openedAtMs }: Layout): void {
    if (seal === undefined) return
    const { gaveUp, forced } = seal
    const fields = { topic: name, epoch, seconds: Math.round((seal.atMs - openedAtMs) / 100) / 10 }
    if (forced)
      this.log.warn(fields, 'sealed by sealAfter: what comes by the old layout is counted as possible disorder')
    else if (gaveUp.length > 0)
      this.log.warn({ ...fields, gaveUp }, 'sealed without the votes of proxies that are gone')
    else this.log.info(fields, 'sealed: every producer has left the old layout')
  }
}
