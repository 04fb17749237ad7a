/**
 * Whether a topic's count may be changed as somebody asks, and what would happen: pure, so that a dry run and the change
 * itself cannot differ. A refusal says what is wrong and what to do; nothing has been changed then.
 */
import type { ChangeName, GateKind, Order } from '../../../state/record.ts'
import { currentLayout, type TopicState, widestCount } from '../../../state/topic-state.ts'
import { existingThatGain, gateKindOf, range } from '../keys-moving.ts'
import { unsealedExpansion } from './waiting.ts'

export interface ChangeRequest {
  readonly change: ChangeName
  readonly to: number
  /** Counts that are no multiple are meant. */
  readonly any: boolean
  /** Who asks, for the log. */
  readonly by?: string
}

export type RefusalCode =
  | 'HG_TO_INVALID'
  | 'HG_TO_SAME'
  | 'HG_TO_TOO_SMALL'
  | 'HG_TO_TOO_LARGE'
  | 'HG_NOT_MULTIPLE'
  | 'HG_CHANGE_IN_PROGRESS'
  | 'HG_NOT_SEALED'
  | 'HG_TOPIC_UNKNOWN'
  | 'HG_TOPIC_NO_RULE'
  | 'HG_STATE_UNAVAILABLE'

export interface Refusal {
  readonly kind: 'refused'
  readonly code: RefusalCode
  readonly message: string
  readonly fix: string
}

export interface ChangePlan {
  readonly kind: 'plan'
  readonly change: ChangeName
  readonly from: number
  readonly to: number
  /** The epoch that the change starts from. */
  readonly after: number
  readonly order: Order
  readonly gates: GateKind
  /** Partitions that no layout had yet. */
  readonly fresh: readonly number[]
  /** Partitions that were there before and are given keys of others. */
  readonly gaining: readonly number[]
}

/** Partitions that a broker creates in one request at most. */
export const MOST_NEW_PARTITIONS = 10_000

export function planChange(topic: TopicState, order: Order, request: ChangeRequest): ChangePlan | Refusal {
  const refusal = checkCount(topic, request) ?? checkOthers(topic, order, request)
  return refusal ?? makePlan(topic, order, request.change, request.to)
}

/** The plan without the checks: for partitions that somebody else has created already. */
export function makePlan(topic: TopicState, order: Order, change: ChangeName, to: number): ChangePlan {
  const { count: from, epoch: after } = currentLayout(topic)
  const gates = gateKindOf(topic, to, order)
  const fresh = range(widestCount(topic), to)
  return { kind: 'plan', change, from, to, after, order, gates, fresh, gaining: existingThatGain(from, to) }
}

export function refuse(code: RefusalCode, message: string, fix: string): Refusal {
  return { kind: 'refused', code, message, fix }
}

function checkCount(topic: TopicState, { change, to, any }: ChangeRequest): Refusal | undefined {
  const { name } = topic
  const { count } = currentLayout(topic)
  const is = `topic ${name} has ${count} partition${count === 1 ? '' : 's'}`
  if (!Number.isSafeInteger(to) || to < 1)
    return refuse('HG_TO_INVALID', `${to} is no number of partitions`, 'ask for a whole number from 1')
  if (to === count) return refuse('HG_TO_SAME', `${is} already`, 'there is nothing to do')
  if (change === 'shrink') {
    if (to < count) return undefined
    const fix = `ask for fewer than ${count}, or expand the topic`
    return refuse('HG_TO_TOO_LARGE', `${is}: ${to} would not remove any`, fix)
  }
  if (to < count)
    return refuse(
      'HG_TO_TOO_SMALL',
      `${is}: ${to} would not add any`,
      `ask for more than ${count}, or shrink the topic`,
    )
  if (to - widestCount(topic) > MOST_NEW_PARTITIONS) {
    const fix = 'expand in several steps, each sealed before the next'
    return refuse('HG_TO_TOO_LARGE', `a broker creates at most ${MOST_NEW_PARTITIONS} partitions at once`, fix)
  }
  if (any || to % count === 0) return undefined
  const near = [Math.floor(to / count) * count, Math.ceil(to / count) * count].filter((other) => other > count)
  const message = `${to} is no multiple of ${count}: keys would move between the existing partitions too, so that every producer's change of layout makes its batches wait for a cut`
  return refuse('HG_NOT_MULTIPLE', message, `expand to ${near.join(' or ')}, or say that any count will do (--any)`)
}

function checkOthers(topic: TopicState, order: Order, { to }: ChangeRequest): Refusal | undefined {
  const { proposal, name } = topic
  if (proposal !== undefined) {
    const message = `a change of topic ${name} to ${proposal.to} partitions is being prepared`
    return refuse('HG_CHANGE_IN_PROGRESS', message, `wait for it: headgate topics describe ${name}`)
  }
  const blocking = gateKindOf(topic, to, order) === 'cuts' ? unsealedExpansion(topic) : undefined
  if (blocking === undefined) return undefined
  const message = `the expansion of topic ${name} to ${blocking.count} partitions is not sealed yet, and this change has to wait for that`
  const fix = `see who is waited for: headgate topics describe ${name}; topics.<regex>.layouts.sealAfter bounds it`
  return refuse('HG_NOT_SEALED', message, fix)
}
