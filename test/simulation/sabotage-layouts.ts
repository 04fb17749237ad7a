/**
 * Each rule of the layouts broken on purpose, in the running shells: what `test/model` does to the reducers, as far as a
 * method can be replaced from outside.
 */
import type { BatchOutcome } from '../../src/editors/produce/policy.ts'
import { TopicCoordinator } from '../../src/features/layouts/control/topic-coordinator.ts'
import { type Done, type Gates, gatesOf } from '../../src/features/layouts/gate.ts'
import { TopicGates } from '../../src/features/layouts/gates/topic-gates.ts'
import type { CountReason, GuardEffect } from '../../src/features/layouts/guard-state.ts'
import { TopicGuard } from '../../src/features/layouts/shell/topic-guard.ts'
import type { LayoutTimes } from '../../src/features/layouts/times.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { Appender } from '../../src/state/shell/appender.ts'
import { Life } from '../../src/state/shell/life.ts'
import { StateShell } from '../../src/state/shell/state-shell.ts'
import type { TopicState } from '../../src/state/topic-state.ts'
import type { View } from '../../src/state/view.ts'
import { type Method, patch } from './patch.ts'

interface LayoutBug {
  name: string
  about: string
  commit(): () => void
  /** Disorder of these reasons fails although it is counted: with the rule in force there is none. */
  uncounted?: readonly CountReason[]
}

type Inside<T> = T & Record<string, never>

const layoutBugs: readonly LayoutBug[] = [
  {
    name: 'layout-gates-open',
    about: 'consumers are given what a gate should hold',
    commit: () => patch(TopicGates.prototype, 'limit', () => () => Number.POSITIVE_INFINITY),
  },
  {
    name: 'gate-on-position',
    about: 'a gate opens by what was fetched, not by what was committed',
    commit: () =>
      both(
        patch(TopicGates.prototype, 'isDone', (original) => {
          return function (this: Positions, ...args: never[]) {
            this.policy = 'position'
            return original.apply(this as never, args)
          }
        }),
        patch(TopicGates.prototype, 'fetched', (original) => {
          return function (this: Positions, ...args: never[]) {
            this.policy = 'position'
            return original.apply(this as never, args)
          }
        }),
      ),
  },
  {
    name: 'no-seal',
    about: 'a change is sealed at once, whoever is still to come',
    commit: () => withTimes({ sealAfterMs: 0 }),
    uncounted: ['late after the seal', 'late above the boundary'],
  },
  {
    name: 'unchained',
    about: 'gates are not chained over two expansions',
    commit: () => {
      return limitedBy((topic, done) => {
        const { limits, waits } = gatesOf(topic, done)
        return { limits: limits.map((limit, partition) => unchained(topic, done, partition) ?? limit), waits }
      })
    },
  },
  {
    name: 'owed-forgotten',
    about: 'a batch that was refused or lost with its connection is not waited for',
    commit: () =>
      patch(TopicGuard.prototype, 'ended', (original) => {
        return function (this: never, id: string, outcome: BatchOutcome) {
          const told = outcome.kind === 'failed' ? { kind: 'answered', end: 0 } : outcome
          return original.call(this, id as never, told as never)
        }
      }),
  },
  {
    name: 'leaving-is-clean',
    about: 'whoever leaves is not waited for',
    commit: () => withTimes({ goneAfterMs: 0 }),
  },
  {
    name: 'boundary-early',
    about: 'boundaries are read at `open`, and not raised to the ends that the votes name',
    commit: commitEarlyBoundaries,
  },
  {
    name: 'cut-without-waiting',
    about: 'a cut is recorded at the first new batch',
    commit: () => withTimes({ cutBoundMs: 0 }),
    uncounted: ['cut without quiet', 'late after its cut'],
  },
  {
    name: 'cut-in-force-early',
    about: 'a cut is in force before every proxy has read it',
    commit: () => seenAs(inForce),
  },
  {
    name: 'lease-ignored',
    about: 'a proxy acts on what it knows however old that is',
    commit: () =>
      patch(Life.prototype, 'mayAct', (original) => {
        const acted = new WeakSet<Life>()
        return function (this: Life) {
          if (original.call(this as never) === true) acted.add(this)
          return acted.has(this)
        }
      }),
  },
  {
    name: 'one-key',
    about: 'all records of a topic have one key in the state log',
    commit: () =>
      patch(Appender.prototype, 'append', (original) => {
        return function (this: never, key: string, value: Uint8Array | null) {
          return original.call(this, `state/${key.split('/')[1] ?? ''}` as never, value as never)
        }
      }),
  },
  {
    name: 'no-cuts',
    about: 'changes to counts that are no multiple are gated by the seal alone',
    commit: () => writtenAs((record) => (record.kind === 'proposal' ? { ...record, gates: 'seal' } : record)),
  },
]

export const layoutSabotages = layoutBugs.map((bug) => {
  const judge = (): (() => void) => silently(bug.uncounted ?? [])
  return {
    name: bug.name,
    about: bug.about,
    scenario: 'layouts' as const,
    commit: () => both(bug.commit(), judge()),
    compare: judge,
  }
})

type Positions = Inside<Record<never, never>> & { policy: unknown }

function both(...undo: (() => void)[]): () => void {
  return () => {
    for (const step of undo.reverse()) step()
  }
}

/** What the gates of every group come to. */
function limitedBy(gates: (topic: TopicState, done: Done) => Gates): () => void {
  interface Inner {
    progress: { version: number }
    isDone: Done
  }
  return patch(TopicGates.prototype, 'of', () => {
    return function (this: Inner, topic: TopicState) {
      return gates(topic, (q, end) => this.isDone(q, end))
    }
  })
}

/** The limit of a fresh partition by its own change alone. */
function unchained(topic: TopicState, done: Done, partition: number): number | undefined {
  const own = topic.layouts.find((layout) => layout.starts[partition] !== undefined && layout.gates === 'seal')
  if (own === undefined) return undefined
  const layouts = topic.layouts.map((layout) => (layout.epoch < own.epoch ? { ...layout, starts: {} } : layout))
  const cuts = topic.cuts.filter((cut) => cut.at > own.openedAt)
  return gatesOf({ ...topic, layouts, cuts }, done).limits[partition]
}

/** Other bounds of time, in guards and coordinators. */
function withTimes(change: Partial<LayoutTimes>): () => void {
  interface Inner {
    times: LayoutTimes
    state: { times: LayoutTimes }
  }
  const make = (original: Method): Method => {
    return function (this: Inner) {
      this.times = { ...this.times, ...change }
      this.state = { ...this.state, times: this.times }
      return original.call(this as never)
    }
  }
  return both(patch(TopicGuard.prototype, 'feed', make), patch(TopicCoordinator.prototype, 'feed', make))
}

/** Disorder of these reasons is not counted: then it counts. */
function silently(reasons: readonly CountReason[]): () => void {
  return patch(TopicGuard.prototype, 'carryOut', (original) => {
    return function (this: never, effect: GuardEffect, all: readonly GuardEffect[]) {
      if (effect.type === 'count' && reasons.includes(effect.reason)) return undefined
      return original.call(this, effect as never, all as never)
    }
  })
}

/** What the records say that are appended to the state log. */
function writtenAs(change: (record: StateRecord) => StateRecord): () => void {
  return patch(Life.prototype, 'append', (original) => {
    return function (this: never, record: StateRecord) {
      return original.call(this, change(record) as never)
    }
  })
}

/** What every part of a proxy is shown of the state. */
function seenAs(change: (view: View) => View): () => void {
  return patch(StateShell.prototype, 'view', (original) => {
    const seen = new WeakMap<TopicState, TopicState>()
    return function (this: never, topicId: string) {
      const view = original.call(this, topicId as never) as View | undefined
      if (view === undefined) return undefined
      const topic = seen.get(view.topic) ?? change(view).topic
      seen.set(view.topic, topic)
      return { ...view, topic }
    }
  })
}

function inForce(view: View): View {
  const readers = Object.fromEntries(Object.keys(view.fleet.members).map((proxy) => [proxy, 0]))
  return { ...view, topic: { ...view.topic, cuts: view.topic.cuts.map((cut) => ({ ...cut, readers })) } }
}

function commitEarlyBoundaries(): () => void {
  interface Inner {
    topic: { name: string }
    deps: { cluster: { endOffsets(name: string, partitions: readonly number[]): Promise<Record<number, number>> } }
    early?: Promise<Record<number, number>>
    reduce(event: object): void
  }
  const readAtOpen = (original: Method): Method => {
    return function (this: Inner, event: { type: string; view?: View }) {
      const topic = event.view?.topic
      if (topic?.proposal !== undefined) {
        const count = Math.max(...topic.layouts.map((layout) => layout.count))
        this.early = this.deps.cluster.endOffsets(
          this.topic.name,
          Array.from({ length: count }, (_, p) => p),
        )
        this.early.catch(() => undefined)
      }
      return original.call(this as never, event as never)
    }
  }
  const useThem = (original: Method): Method => {
    return function (this: Inner, what: string, partitions: readonly number[]) {
      if (!what.startsWith('boundaries') || this.early === undefined) {
        return original.call(this as never, what as never, partitions as never)
      }
      return this.early.then(
        (all) => this.reduce({ type: 'ends', what, ends: Object.fromEntries(partitions.map((p) => [p, all[p] ?? 0])) }),
        () => undefined,
      )
    }
  }
  return both(
    patch(TopicCoordinator.prototype, 'reduce', readAtOpen),
    patch(TopicCoordinator.prototype, 'readEnds', useThem),
    writtenAs((record) => (record.kind === 'vote' ? { ...record, ends: {} } : record)),
  )
}
