/** What the admin port answers about layouts and gates, and the calls that change a topic's partitions. */
import { AdminError, type Reply, type Route } from './router.ts'

/** An answer, or why there is none. */
export type LayoutAnswer =
  | { readonly ok: true; readonly body: unknown }
  | {
      readonly ok: false
      readonly status: number
      readonly code: string
      readonly message: string
      readonly fix: string | undefined
    }

/** What the routes ask of the feature. */
export interface LayoutSource {
  state(): unknown
  topics(): unknown
  topic(name: string): Promise<LayoutAnswer>
  /** @param body what was asked for, not checked yet */
  change(name: string, change: 'expand' | 'shrink', body: unknown): Promise<LayoutAnswer>
  /** Shut gates of a group that reads through this proxy, and partitions that it is not assigned. */
  gates(group: string): unknown
  /** Groups that have either here. */
  shutGroups(): unknown
}

export function layoutRoutes(source: LayoutSource | undefined): Route[] {
  const get = (path: string, summary: string, handle: (asked: LayoutSource, name: string) => unknown): Route => ({
    method: 'GET',
    path,
    summary,
    handle: async ({ params }) => reply(await handle(known(source), params.topic ?? params.group ?? '')),
  })
  const post = (change: 'expand' | 'shrink', summary: string): Route => ({
    method: 'POST',
    path: `/api/topics/{topic}/${change}`,
    summary,
    handle: async ({ params, body }) => reply(await known(source).change(params.topic ?? '', change, body)),
  })
  return [
    get('/api/state', 'the state log: whether it can be had, this proxy, the leader, the fleet', (of) => of.state()),
    get('/api/topics', 'topics with layouts: counts, epochs, what is under way', (of) => of.topics()),
    get('/api/topics/{topic}', 'one topic: layouts, boundaries, votes, late batches, who is waited for', (of, name) =>
      of.topic(name),
    ),
    post('expand', 'adds partitions in order: {"to": 6, "any": false, "dryRun": false}'),
    post('shrink', 'removes partitions in order: {"to": 3, "live": false, "dryRun": false}'),
    get('/api/groups', 'groups with shut gates, or partitions that are not assigned, that read here', (of) =>
      of.shutGroups(),
    ),
    get(
      '/api/groups/{group}/gates',
      'every shut gate: what for, how far that is; partitions that are not assigned yet',
      (of, name) => of.gates(name),
    ),
  ]
}

function known(source: LayoutSource | undefined): LayoutSource {
  if (source !== undefined) return source
  const fix = 'give a topic layouts: {} under topics: in the configuration (docs/layouts.md)'
  throw new AdminError(404, 'HG_NO_LAYOUTS', 'no topic has layouts in the configuration of this proxy', fix)
}

function reply(answer: unknown): Reply {
  if (!isLayoutAnswer(answer)) return { body: answer }
  if (answer.ok) return { body: answer.body }
  throw new AdminError(answer.status, answer.code, answer.message, answer.fix)
}

function isLayoutAnswer(answer: unknown): answer is LayoutAnswer {
  return typeof answer === 'object' && answer !== null && 'ok' in answer
}
