/** The HTTP server of the admin port. It has few connections and small answers, and never holds up the process. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { AdminError, dispatch, type Reply, type Route } from './router.ts'

export interface AdminOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly allowChanges: boolean
  readonly routes: readonly Route[]
  /** Told of errors that are ours, not the caller's. */
  readonly onError: (error: Error, path: string) => void
}

export interface AdminServer {
  readonly host: string
  readonly port: number
  /** Stops listening and ends open connections. */
  close(): Promise<void>
}

/** Starts listening. Rejects with the system's error (EADDRINUSE, EACCES, EADDRNOTAVAIL, …). */
export async function startAdmin(options: AdminOptions): Promise<AdminServer> {
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5000, keepAliveTimeout: 5000 })
  server.maxConnections = 256
  await listen(server, options)
  const { address, port } = server.address() as AddressInfo
  const mayChange = options.allowChanges || isLoopback(address)
  const bound = isLoopback(address) ? 'loopback' : 'reachable'
  server.on('request', (request, response) => {
    void answer(options, request, response, mayChange, bound)
  })
  return {
    host: address,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listen(server: Server, { host, port }: AdminOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/**
 * On loopback only names of this host are answered to: else a web page whose name was made to point here (DNS rebinding)
 * could read what the browser's user may see.
 */
function checkHost(host: string | undefined): void {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? 'localhost'
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return
  throw new AdminError(403, 'HG_HOST', `${name} is not a name of this host`, 'use 127.0.0.1 or localhost')
}

/** Addresses that only this host can reach. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.')
}

async function answer(
  options: AdminOptions,
  request: IncomingMessage,
  response: ServerResponse,
  mayChange: boolean,
  bound: 'loopback' | 'reachable',
) {
  let reply: Reply
  let headers: Readonly<Record<string, string>> = {}
  try {
    if (bound === 'loopback') checkHost(request.headers.host)
    reply = await dispatch(options.routes, request, mayChange)
  } catch (thrown) {
    const error = thrown instanceof AdminError ? thrown : undefined
    if (!error) options.onError(thrown as Error, request.url ?? '')
    const { status = 500, code = 'HG_INTERNAL', message = 'internal error, see the log', fix } = error ?? {}
    reply = { status, body: { error: { code, message, ...(fix !== undefined && { fix }) } } }
    headers = error?.headers ?? {}
  }
  if (reply.stream !== undefined && request.method !== 'HEAD') return sendLines(reply.stream, response)
  const text = reply.type === undefined ? `${JSON.stringify(reply.body)}\n` : String(reply.body)
  // A body that was not read to its end would be taken for the next request.
  if (!request.complete) response.shouldKeepAlive = false
  response.writeHead(reply.status ?? 200, {
    'content-type': reply.type ?? 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...headers,
  })
  response.end(request.method === 'HEAD' ? undefined : text)
}

/** Unsent bytes at which a caller counts as too slow; its lines are dropped from then on until it has caught up. */
const maxUnsentBytes = 8 * 1024 * 1024

function sendLines(stream: NonNullable<Reply['stream']>, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8', 'cache-control': 'no-store' })
  response.flushHeaders()
  stream({
    send: (line) => {
      if (response.writableLength > maxUnsentBytes) return false
      response.write(`${line}\n`)
      return true
    },
    onEnd: (done) => void response.once('close', done),
  })
}
