/** What is wrong with the state, by where it shows; each distinct problem is logged once. */
import type { Log } from '../../telemetry/log.ts'

export const problemSources = ['log', 'group', 'appends'] as const
export type ProblemSource = (typeof problemSources)[number]

export class Problems {
  readonly #log: Log
  readonly #now = new Map<ProblemSource, string>()
  readonly #logged = new Map<ProblemSource, string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** The one to show first: without the log nothing else can work. */
  get first(): string | undefined {
    const source = problemSources.find((one) => this.#now.has(one))
    return source === undefined ? undefined : this.#now.get(source)
  }

  get sources(): ReadonlySet<ProblemSource> {
    return new Set(this.#now.keys())
  }

  /** undefined: it is well now. */
  note(source: ProblemSource, problem: string | undefined): void {
    if (problem === undefined) {
      this.#now.delete(source)
      this.#logged.delete(source)
      return
    }
    this.#now.set(source, problem)
    if (this.#logged.get(source) === problem) return
    this.#logged.set(source, problem)
    this.#log.warn({ source }, `${problem}; retrying`)
  }
}
