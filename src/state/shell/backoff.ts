/** How long to wait before trying again: soon where it may pass by itself (a leader moves), longer where people must act. */
import { ClusterError } from '../../cluster/cluster-error.ts'
import { pause } from '../../cluster/retried.ts'
import type { Runtime } from '../../runtime/runtime.ts'

const firstMs = 200
const passingMaxMs = 800
const lastingMaxMs = 5000

export class Backoff {
  readonly #runtime: Runtime
  #nextMs = firstMs

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** It went well: the next failure is a first one. */
  reset(): void {
    this.#nextMs = firstMs
  }

  async wait(error: unknown): Promise<void> {
    const passes = error instanceof ClusterError && error.passes
    const waitMs = Math.min(this.#nextMs, passes ? passingMaxMs : lastingMaxMs)
    this.#nextMs = Math.min(lastingMaxMs, 2 * this.#nextMs)
    await pause(this.#runtime, waitMs)
  }
}
