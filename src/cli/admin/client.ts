/** Asks the admin port of a running proxy. */
import { type Io, type Option, UsageError } from '../command.ts'

export const adminOptions = {
  admin: { type: 'string' },
  json: { type: 'boolean' },
} as const satisfies Record<string, Option>

export const adminHelp = `      --admin URL    admin port of any proxy (or HEADGATE_ADMIN; default http://127.0.0.1:9190)
      --json         the answer as JSON`

/** The proxy did not do it; exit code 1. `fix` says what helps. */
export class AdminCallError extends Error {
  readonly code: string
  readonly fix: string | undefined

  constructor(code: string, message: string, fix?: string) {
    super(message)
    this.name = 'AdminCallError'
    this.code = code
    this.fix = fix
  }
}

export class AdminClient {
  readonly url: string

  /** Throws `UsageError` if the address is none. */
  constructor(option: string | undefined, io: Io) {
    this.url = option ?? (io.env.HEADGATE_ADMIN || 'http://127.0.0.1:9190')
    if (!/^https?:\/\//.test(this.url) || !URL.canParse(this.url))
      throw new UsageError(`${this.url} is not the address of an admin port; write http://host:9190`)
  }

  get(path: string): Promise<unknown> {
    return this.ask(path, {})
  }

  post(path: string, body: object): Promise<unknown> {
    const headers = { 'content-type': 'application/json' }
    return this.ask(path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  /** Throws `AdminCallError`: nobody answers, or the answer is an error. */
  private async ask(path: string, init: RequestInit): Promise<unknown> {
    let answer: Response
    let text: string
    try {
      answer = await fetch(new URL(path, this.url), init)
      text = await answer.text()
    } catch (error) {
      const { message, cause } = error as Error
      const why = cause instanceof Error && cause.message !== '' ? cause.message : message
      const fix = 'start it, or name its admin port with --admin or HEADGATE_ADMIN'
      throw new AdminCallError('HG_UNREACHABLE', `no proxy answers at ${this.url}: ${why}`, fix)
    }
    const body = parse(text)
    if (body === undefined)
      throw new AdminCallError('HG_FOREIGN', `what answers at ${this.url} is no Headgate (${answer.status})`)
    if (answer.ok) return body
    const { error } = body as { error?: { code: string; message: string; fix?: string } }
    throw new AdminCallError(error?.code ?? `HTTP ${answer.status}`, error?.message ?? answer.statusText, error?.fix)
  }
}

function parse(text: string): object | undefined {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Runs what may be refused, and says so: exit code 1. */
export async function reported(command: string, io: Io, run: () => Promise<number>): Promise<number> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof AdminCallError)) throw error
    io.err(`headgate ${command}: ${error.message} (${error.code})\n`)
    if (error.fix !== undefined) io.err(`  ${error.fix}\n`)
    return 1
  }
}
