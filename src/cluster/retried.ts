/** Asking the cluster again, a bounded number of times, where the answer may change. */
import type { Runtime } from '../runtime/runtime.ts'
import { ClusterError } from './cluster-error.ts'

const defaultAttempts = 5
const firstPauseMs = 50
const longestPauseMs = 1000

/**
 * Runs `ask` until it succeeds: `attempts` times at most, with growing pauses, and only after a ClusterError that may
 * pass; the last error is the caller's.
 */
export async function retried<T>(
  runtime: Runtime,
  attempts: number | undefined,
  ask: (attempt: number) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(attempt)
    } catch (error) {
      if (!(error instanceof ClusterError) || !error.passes || attempt >= (attempts ?? defaultAttempts)) throw error
    }
    await pause(runtime, Math.min(longestPauseMs, firstPauseMs * 2 ** attempt))
  }
}

/** Resolves after `delayMs`. */
export function pause(runtime: Runtime, delayMs: number): Promise<void> {
  return new Promise((resolve) => runtime.timer(delayMs, resolve))
}
