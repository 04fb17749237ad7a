/** Which requests each client id sends through the proxy, counted from its tap. */
import { apiName } from '../../../src/protocol/api-table.ts'
import type { TapLine } from '../../../src/lifecycle/tap-lines.ts'

interface Seen {
  readonly at: number
  readonly api: string
  readonly connection: number
}

/** What one client id sent in a span of time. */
export interface Sent {
  /** API → requests. */
  readonly requests: Readonly<Record<string, number>>
  /** Connections that had carried no request before. */
  readonly opened: number
}

/** Listens until it is stopped. */
export class Requests {
  readonly #seen = new Map<string, Seen[]>()
  readonly #end = new AbortController()
  #listening: Promise<void> = Promise.resolve()

  /** Begins to listen at the proxy with this admin URL; resolves when nothing is missed any more. */
  async listen(admin: string): Promise<void> {
    const answer = await fetch(`${admin}/api/tap`, { signal: this.#end.signal })
    if (!answer.ok || answer.body === null) throw new Error(`no tap: ${answer.status} ${await answer.text()}`)
    this.#listening = this.#read(answer.body).catch((error: unknown) => {
      if (!this.#end.signal.aborted) throw error
    })
  }

  /** Between two times (milliseconds since 1970, as the proxy's machine has it). */
  between(clientId: string, from: number, to: number): Sent {
    const all = this.#seen.get(clientId) ?? []
    const before = new Set(all.filter(({ at }) => at < from).map(({ connection }) => connection))
    const within = all.filter(({ at }) => at >= from && at < to)
    const requests: Record<string, number> = {}
    for (const { api } of within) requests[api] = (requests[api] ?? 0) + 1
    const fresh = within.map(({ connection }) => connection).filter((connection) => !before.has(connection))
    return { requests, opened: new Set(fresh).size }
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#listening
  }

  async #read(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = ''
    for await (const part of body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + part).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') this.#take(JSON.parse(line) as TapLine | { dropped: number })
    }
  }

  #take(line: TapLine | { dropped: number }): void {
    if ('dropped' in line) throw new Error(`the tap left out ${line.dropped} frames`)
    const { at, direction, clientId, apiKey, connection } = line
    if (direction !== 'request' || clientId === null) return
    let seen = this.#seen.get(clientId)
    if (seen === undefined) this.#seen.set(clientId, (seen = []))
    seen.push({ at, api: apiName(apiKey), connection })
  }
}
