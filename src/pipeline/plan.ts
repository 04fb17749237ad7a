/** Handlers compiled at start into one plain list per (api key, version), so that asking is a table look-up. */
import { apis } from '../protocol/api-table.ts'
import type { Depth, Handler, Interest } from './handler.ts'

/** What happens to one version of one API. */
export interface Plan {
  readonly request: readonly Handler[]
  /** In the order of calling: the reverse of the handlers. */
  readonly response: readonly Handler[]
  readonly requestDepth: Depth
  readonly responseDepth: Depth
  /** Its answer waits by design, so its latency is kept apart. */
  readonly longPoll: boolean
}

export interface Plans {
  /** undefined: the API or version is unknown here; the connection is closed, as a broker does. */
  find(apiKey: number, apiVersion: number): Plan | undefined
  readonly handlers: readonly Handler[]
}

/** Fetch, JoinGroup, SyncGroup, ShareFetch: held by the broker until something happens. */
const longPolls: ReadonlySet<number> = new Set([1, 11, 14, 78])

const depths: readonly Depth[] = ['header', 'scan', 'full']

/** @param handlers in the order in which they see requests; responses pass them in reverse */
export function compilePlans(handlers: readonly Handler[]): Plans {
  const table: (readonly (Plan | undefined)[] | undefined)[] = []
  for (const api of apis) {
    if (!api.client) continue
    const versions: (Plan | undefined)[] = []
    for (let version = api.minVersion; version <= api.maxVersion; version++)
      versions[version] = compile(handlers, api.key, version)
    table[api.key] = versions
  }
  return { find: (apiKey, apiVersion) => table[apiKey]?.[apiVersion], handlers }
}

function compile(handlers: readonly Handler[], apiKey: number, version: number): Plan {
  const request: Handler[] = []
  const response: Handler[] = []
  let requestDepth: Depth = 'header'
  let responseDepth: Depth = 'header'
  for (const handler of handlers) {
    for (const interest of handler.interests) {
      if (!matches(interest, apiKey, version)) continue
      if (interest.side === 'request') {
        request.push(handler)
        requestDepth = deeper(requestDepth, interest.depth)
      } else {
        response.unshift(handler)
        responseDepth = deeper(responseDepth, interest.depth)
      }
    }
  }
  return { request, response, requestDepth, responseDepth, longPoll: longPolls.has(apiKey) }
}

function matches(interest: Interest, apiKey: number, version: number): boolean {
  if (interest.apiKey !== apiKey) return false
  const { versions } = interest
  return versions === undefined || (version >= versions[0] && version <= versions[1])
}

function deeper(a: Depth, b: Depth): Depth {
  return depths.indexOf(a) >= depths.indexOf(b) ? a : b
}
