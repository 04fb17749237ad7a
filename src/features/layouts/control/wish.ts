/**
 * What somebody asked for, and what became of it. A wish is a `proposal` record, appended by whichever proxy was asked;
 * the leader goes on with it, so it outlives the connection it came from and, once it was read back, the proxy too.
 */
import type { ProposalRecord } from '../../../state/record.ts'
import { currentLayout, layoutOf, type Proposal, type TopicState } from '../../../state/topic-state.ts'
import { type ChangePlan, type Refusal, refuse } from './change-plan.ts'

export interface Opened {
  readonly kind: 'opened'
  readonly epoch: number
  readonly count: number
}

export interface Aborted {
  readonly kind: 'aborted'
  readonly reason: string
}

export type Outcome = Opened | Aborted | Refusal

/** The record that makes a plan durable. */
export function proposalOf(plan: ChangePlan, id: string, proxy: string, topicId: string, assigned: boolean) {
  const { change, to, order, gates, after } = plan
  const record: ProposalRecord = { kind: 'proposal', proxy, topicId, proposal: id, after, change, to, order, gates }
  return assigned ? { ...record, assigned } : record
}

/** What became of a proposal; undefined: not decided. `seen`: as it was last seen in a view. */
export function fateOf(plan: ChangePlan, id: string, seen: Proposal | undefined, topic: TopicState) {
  const { proposal, aborted } = topic
  if (proposal?.id === id) return undefined
  if (aborted?.proposal === id) return { kind: 'aborted', reason: aborted.reason } satisfies Aborted
  if (currentLayout(topic).epoch < plan.after) return lost(topic)
  const next = layoutOf(topic, plan.after + 1)
  if (next !== undefined) {
    return next.count === plan.to ? opened(next) : overtaken(topic)
  }
  // Aborted, and another change with it, between two views.
  if (seen !== undefined) return { kind: 'aborted', reason: 'it was not ready in time' } satisfies Aborted
  return proposal === undefined ? undefined : overtaken(topic)
}

function opened({ epoch, count }: { epoch: number; count: number }): Opened {
  return { kind: 'opened', epoch, count }
}

function lost(topic: TopicState): Refusal {
  const { name } = topic
  const message = `the state log was lost meanwhile: layouts of topic ${name} begin anew with ${currentLayout(topic).count} partitions`
  return refuse('HG_STATE_UNAVAILABLE', message, `look at it (headgate topics describe ${name}) and ask again`)
}

function overtaken(topic: TopicState): Refusal {
  const to = topic.proposal?.to ?? currentLayout(topic).count
  const message = `another change of topic ${topic.name}, to ${to} partitions, came first`
  return refuse('HG_CHANGE_IN_PROGRESS', message, `look at it (headgate topics describe ${topic.name}) and ask again`)
}
