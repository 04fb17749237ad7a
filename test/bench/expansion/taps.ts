/** What clients wait for, as the taps of several proxies show it: how long each answer took from its request's arrival. */
import { apiName } from '../../../src/protocol/api-table.ts'
import type { TapLine } from '../../../src/lifecycle/tap-lines.ts'

export interface Taken {
  /** When it was answered, in milliseconds since 1970. */
  readonly at: number
  readonly api: string
  readonly clientId: string
  readonly ms: number
}

/** What was begun between two times. */
export function begunBetween(all: readonly Taken[], from: number, to: number): Taken[] {
  return all.filter(({ at, ms }) => at - ms >= from && at - ms < to)
}

export class Taps {
  readonly taken: Taken[] = []
  private readonly end = new AbortController()
  private readonly reading: Promise<void>[] = []

  /** Listens at the proxy with this admin URL; resolves when nothing is missed any more. */
  async listen(admin: string, apis: readonly string[]): Promise<void> {
    const answer = await fetch(`${admin}/api/tap?api=${apis.join(',')}`, { signal: this.end.signal })
    if (!answer.ok || answer.body === null) throw new Error(`no tap: ${answer.status} ${await answer.text()}`)
    this.reading.push(
      this.read(answer.body).catch((error: unknown) => {
        if (!this.end.signal.aborted) throw error
      }),
    )
  }

  of(api: string, who: (clientId: string) => boolean = () => true): Taken[] {
    return this.taken.filter((one) => one.api === api && who(one.clientId))
  }

  async stop(): Promise<void> {
    this.end.abort()
    await Promise.all(this.reading)
  }

  private async read(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = ''
    for await (const part of body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + part).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.includes('"response"')) this.take(JSON.parse(line) as TapLine)
    }
  }

  private take({ at, apiKey, clientId, latencyMs }: TapLine): void {
    this.taken.push({ at, api: apiName(apiKey), clientId: clientId ?? '', ms: latencyMs })
  }
}
