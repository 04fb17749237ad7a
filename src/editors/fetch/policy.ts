/**
 * What features tell the Fetch editor: which records of a partition a client may have. They never touch a Fetch
 * themselves; two policies on one partition compose (the lower limit, and what both keep).
 */
import type { Connection } from '../../pipeline/connection.ts'
import type { Keep } from '../../records/filter.ts'

/** One client's view of one partition. */
export interface PartitionPolicy {
  /** Whether a record may go to the client; undefined: every one. */
  readonly keep?: Keep
  /**
   * Records at or above this offset wait, as if the log ended there. Asked again while a Fetch waits, and for what was
   * found until the answer leaves: what lies above it by then is not given.
   */
  limit?(): number
  /** The partition is answered with this error, at once and without records: the client asks for Metadata. */
  readonly refuse?: number
  /** Nothing waits now: a Fetch in which every policy says so passes as it is, and is asked about when its answer comes. */
  readonly standby?: boolean
  /** Told once per answer how many data records of the partition were delivered and withheld. */
  count?(delivered: number, withheld: number): void
}

/** A client's view of all partitions. */
export interface FetchView {
  /**
   * @param topic its name; empty from Fetch v13 on, where the topic id stands for it
   * @param fetchOffset where the client reads on; −1: the question is about an answer that has come
   * @returns undefined for a partition that passes as it is
   */
  partition(topic: string, topicId: string, partition: number, fetchOffset: number): PartitionPolicy | undefined
}

export interface FetchPolicy {
  /**
   * Asked for every Fetch, and again for the answer of one that passed unopened, so it must be cheap; undefined: this
   * client's Fetches pass unopened. An answer that a view of by then would not let pass is answered empty instead.
   */
  view(connection: Connection): FetchView | undefined
  /** Told when limits may have risen: Fetches that wait behind one look again at once. */
  onChange?(listener: () => void): void
}

/** The view in which every policy's say counts. */
export function composeViews(views: readonly FetchView[]): FetchView {
  const [first] = views
  if (first !== undefined && views.length === 1) return first
  return {
    partition: (topic, topicId, partition, fetchOffset) =>
      compose(views.flatMap((view) => view.partition(topic, topicId, partition, fetchOffset) ?? [])),
  }
}

function compose(policies: readonly PartitionPolicy[]): PartitionPolicy | undefined {
  const [first] = policies
  if (first === undefined || policies.length === 1) return first
  const keeps = policies.flatMap(({ keep }) => keep ?? [])
  const [refuse] = policies.flatMap((policy) => policy.refuse ?? [])
  return {
    ...(refuse === undefined ? {} : { refuse }),
    ...(keeps.length === 0 ? {} : { keep: (record) => keeps.every((keep) => keep(record)) }),
    ...(policies.every(({ standby }) => standby === true) ? { standby: true } : {}),
    limit: () => Math.min(...policies.map((policy) => policy.limit?.() ?? Number.POSITIVE_INFINITY)),
    count: (delivered, withheld) => {
      for (const policy of policies) policy.count?.(delivered, withheld)
    },
  }
}
