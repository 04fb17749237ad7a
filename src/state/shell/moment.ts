/** Now, by both clocks: what the lease is reckoned by. */
import type { Runtime } from '../../runtime/runtime.ts'
import type { Moment } from '../lease.ts'

export function momentOf(runtime: Runtime): Moment {
  return { monotonicMs: runtime.now(), wallMs: runtime.wallNow() }
}
