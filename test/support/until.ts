/** Waiting for what another process or socket does: it is asked again and again, and a wait in vain says for what. */
import { setTimeout as delay } from 'node:timers/promises'

/** Far longer than anything takes that is waited for, and less than the time-outs of the tests that wait. */
const patienceMs = 120_000

/** Resolves once `condition` holds. Rejects after the patience, with the source of the condition and the place that waits. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs = patienceMs): Promise<void> {
  const late = new Error(`not within ${withinMs} ms: ${String(condition)}`)
  for (const endsAt = performance.now() + withinMs; !(await condition()); await delay(20))
    if (performance.now() >= endsAt) throw late
}
