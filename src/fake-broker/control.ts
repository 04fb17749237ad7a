/**
 * The hook by which a test takes hold of any request (in the manner of franz-go's kfake): it sees the decoded request
 * before the model does and says what happens instead of, or to, the answer.
 */

export interface Intercepted {
  readonly nodeId: number
  readonly connectionId: number
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string
  /** As a broker shows it: `/10.0.0.1`. */
  readonly clientHost: string
  /** As the API's codec decodes it. */
  readonly request: unknown
}

export type Fault =
  /** Answered with this body; the model never sees the request. */
  | { answer: object }
  /** Served, and the answer held back; `overtake`: later answers of this connection may go out before it. */
  | { delayMs: number; overtake?: boolean }
  /** Served, and the connection closed after this many bytes of the answer's frame. */
  | { cutAt: number }
  /** Closed without being served. */
  | { close: true }
  /** Served, and never answered; `unserved`: not even served. Later requests go on. */
  | { swallow: true; unserved?: boolean }
  /** Served, and the bytes of the answer's frame (size included) replaced. */
  | { rewrite: (frame: Buffer) => Buffer }

/** Returns undefined to let the request pass. */
export type Control = (intercepted: Intercepted) => Fault | undefined

export class Controls {
  readonly #controls: { apiKey: number; control: Control }[] = []

  /** `apiKey` −1: every API. The first control that returns a fault wins. Returns how to remove it. */
  add(apiKey: number, control: Control): () => void {
    const entry = { apiKey, control }
    this.#controls.push(entry)
    return () => {
      const at = this.#controls.indexOf(entry)
      if (at >= 0) this.#controls.splice(at, 1)
    }
  }

  ask(intercepted: Intercepted): Fault | undefined {
    for (const { apiKey, control } of this.#controls) {
      if (apiKey >= 0 && apiKey !== intercepted.apiKey) continue
      const fault = control(intercepted)
      if (fault !== undefined) return fault
    }
    return undefined
  }
}
