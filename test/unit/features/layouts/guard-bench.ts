/** The guard of one topic at one proxy, with the log it reads and writes. */
import assert from 'node:assert/strict'
import { type GuardEvent, reduceGuard } from '../../../../src/features/layouts/guard.ts'
import { type Batch, type GuardEffect, newGuard } from '../../../../src/features/layouts/guard-state.ts'
import { defaultTimes as times } from '../../../../src/features/layouts/times.ts'
import { applyFleet, emptyFleet } from '../../../../src/state/fleet.ts'
import type { GateKind, TopicChangeRecord } from '../../../../src/state/record.ts'
import { applyTopic } from '../../../../src/state/topic-reducer.ts'
import type { TopicState } from '../../../../src/state/topic-state.ts'

type Body<R> = R extends unknown ? Omit<R, 'topicId'> : never

/** Proxy a under test with proxy b beside it, on a topic that grows from 3. */
export class Bench {
  guard = newGuard('a', times)
  fleet = ['a', 'b'].reduce(
    (fleet, proxy, at) => applyFleet(fleet, { kind: 'register', proxy, host: '' }, at, 0),
    emptyFleet,
  )
  topic: TopicState | undefined
  position = 2
  atMs = 0

  write(body: Body<TopicChangeRecord>): this {
    const record = { ...body, topicId: 'T' }
    this.topic = applyTopic(this.topic, { record, offset: this.position, atMs: this.atMs }, this.fleet)
    this.position += 1
    return this
  }

  open(to: number, gates: GateKind): this {
    return this.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 })
      .write({ kind: 'proposal', proxy: 'b', proposal: 'x', after: 0, change: 'expand', to, order: 'key', gates })
      .write({ kind: 'preparing', proxy: 'b', proposal: 'x' })
      .write({ kind: 'ready', proxy: 'a', proposal: 'x' })
      .write({ kind: 'ready', proxy: 'b', proposal: 'x' })
      .write({ kind: 'open', proxy: 'b', proposal: 'x', starts: { 3: 0 }, leaderEpochs: {}, unsettled: [0] })
  }

  do(event: GuardEvent, atMs = this.atMs): GuardEffect[] {
    this.atMs = atMs
    const [state, effects] = reduceGuard(this.guard, { ...event, atMs })
    this.guard = state
    return effects
  }

  view(atMs = this.atMs): GuardEffect[] {
    assert.ok(this.topic)
    return this.do({ type: 'view', view: { topic: this.topic, fleet: this.fleet, position: this.position } }, atMs)
  }

  /** Writes what the guard wanted to append, and shows it the result. */
  loop(effects: GuardEffect[], atMs = this.atMs): GuardEffect[] {
    for (const effect of effects) if (effect.type === 'append') this.write(effect.record as Body<TopicChangeRecord>)
    return this.view(atMs)
  }
}

let made = 0
export const batch = (partition: number, hashes: number[], more: Partial<Batch> = {}): Batch => {
  const id = `b${made++}`
  return { id, instance: 'i', connection: 'c', partition, mark: id, hashes, hasRoom: true, mayRefuse: false, ...more }
}
/** What the effects do; that a cut came into force is only told. */
export const named = (effects: GuardEffect[]) =>
  effects
    .filter(({ type }) => type !== 'cut')
    .map((effect) =>
      effect.type === 'append' ? effect.record.kind : effect.type === 'count' ? effect.reason : effect.type,
    )
