/**
 * Optional native packages: accelerators, never needed. Whoever uses one has its own code beside it.
 * `HEADGATE_NATIVE=off` makes them all absent, so that tests can run on the fallbacks.
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** The package, or undefined where it is not installed, does not load on this machine, or is switched off. */
export function loadOptional(name: string): unknown {
  if (process.env['HEADGATE_NATIVE'] === 'off') return undefined
  try {
    return require(name) as unknown
  } catch {
    return undefined
  }
}
