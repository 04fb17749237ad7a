/**
 * Routes of the admin port. Answers are JSON, errors too: `{"error": {"code", "message", "fix"}}`. A call that changes
 * something is refused unless the port is bound to loopback or `admin.allowChanges` is set, and when a browser sends it
 * for another site.
 */
import type { IncomingMessage } from 'node:http'

export interface Reply {
  readonly status?: number
  /** Sent as JSON, or as it is if it is text with a `type`. */
  readonly body: unknown
  readonly type?: string
  /** Instead of a body: lines that come as they come, until the caller goes away. */
  readonly stream?: (lines: LineStream) => void
}

/** An answer of lines without end. */
export interface LineStream {
  /** False, and nothing is sent: the caller does not keep up. */
  send(line: string): boolean
  /** Calls `done` once, when the caller has gone. */
  onEnd(done: () => void): void
}

export interface Call {
  readonly url: URL
  /** What stands in the address for the `{name}` parts of the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The parsed JSON body of a call that changes something; undefined for others. */
  readonly body: unknown
}

export interface Route {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** `/api/topics/{topic}`: a part in braces stands for any text without a slash (%2F is none). */
  readonly path: string
  /** One line for the list at `/`. */
  readonly summary: string
  handle(call: Call): Reply | Promise<Reply>
}

/** An answer other than 2xx, thrown by a handler. */
export class AdminError extends Error {
  readonly status: number
  readonly code: string
  readonly fix: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, fix?: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'AdminError'
    this.status = status
    this.code = code
    this.fix = fix
    this.headers = headers
  }
}

const maxBodyBytes = 64 * 1024

/** Answers one request. Throws `AdminError` for whatever is not to be answered with 2xx. */
export async function dispatch(routes: readonly Route[], request: IncomingMessage, mayChange: boolean): Promise<Reply> {
  const url = URL.canParse(request.url ?? '', 'http://admin')
    ? new URL(request.url ?? '', 'http://admin')
    : notFound(request.url ?? '')
  const here = routes.flatMap((route) => {
    const params = paramsOf(route.path, url.pathname)
    return params === undefined ? [] : [{ route, params }]
  })
  if (here.length === 0) notFound(url.pathname)
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = here.find(({ route }) => route.method === method)
  if (!found) {
    const allow = here.map(({ route }) => route.method).join(', ')
    throw new AdminError(405, 'HG_METHOD', `${request.method} is not answered here`, `use ${allow}`, { allow })
  }
  const { route, params } = found
  if (route.method === 'GET') return route.handle({ url, params, body: undefined })
  checkMayChange(request, mayChange)
  return route.handle({ url, params, body: await readJson(request) })
}

/** What the parts in braces stand for; undefined: the path is another one. */
function paramsOf(pattern: string, path: string): Record<string, string> | undefined {
  if (!pattern.includes('{')) return pattern === path ? {} : undefined
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? ''
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    if (name === undefined ? part !== text : text === '') return undefined
    if (name !== undefined) params[name] = decode(text)
  }
  return params
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AdminError(400, 'HG_VALUE', `${text} is not a percent-encoded name`, 'write % as %25')
  }
}

function notFound(path: string): never {
  throw new AdminError(404, 'HG_NOT_FOUND', `there is nothing at ${path}`, 'GET / lists what there is')
}

function checkMayChange(request: IncomingMessage, mayChange: boolean): void {
  if (!mayChange) {
    const message = 'changes are answered only on a loopback address'
    throw new AdminError(403, 'HG_READ_ONLY', message, 'bind admin to 127.0.0.1, or set admin.allowChanges: true')
  }
  const { origin, host } = request.headers
  if (origin !== undefined && origin !== `http://${host ?? ''}`) {
    throw new AdminError(403, 'HG_ORIGIN', `changes are not taken from pages of ${origin}`)
  }
  if (request.headers['content-type']?.split(';')[0]?.trim() !== 'application/json') {
    throw new AdminError(415, 'HG_CONTENT_TYPE', 'the body is not JSON', 'send content-type: application/json')
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBodyBytes) throw new AdminError(413, 'HG_BODY_TOO_LARGE', `a body may have ${maxBodyBytes} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch (cause) {
    throw new AdminError(400, 'HG_JSON', `the body is not JSON: ${(cause as Error).message}`)
  }
}
