/**
 * What the guard of a topic forgets: instances that left so long ago that no vote waits for them. A change that is never
 * sealed (a shrink whose producers live on) would else keep every instance that ever wrote. By which layout one wrote
 * last is kept until all is settled: what older comes from it after that is late, however long it was away.
 */
import type { GuardState } from './guard-state.ts'

/** @param isSettled no batch of an older layout is looked for any more */
export function forgetGone(state: GuardState, atMs: number, isSettled: boolean): { state: GuardState; gone: string[] } {
  const busy = new Set([...state.held, ...state.flying.values()].map(({ batch }) => batch.instance))
  const gone = [...state.ledgers.values()]
    .filter(({ instance, goneSinceMs = Infinity }) => {
      return atMs - goneSinceMs >= state.times.goneAfterMs && !busy.has(instance)
    })
    .map(({ instance }) => instance)
  const left = new Set(gone)
  const ledgers = new Map([...state.ledgers].filter(([instance]) => !left.has(instance)))
  const split = new Set([...state.split].filter((instance) => ledgers.has(instance)))
  const isKept = (instance: string): boolean => !isSettled || ledgers.has(instance) || busy.has(instance)
  const cutting = new Map([...state.cutting].filter(([instance]) => isKept(instance)))
  return { state: { ...state, ledgers, split, cutting }, gone }
}
