/** Static key ranges as a feature: filters the Fetch of configured consumers and refuses their commits. */
import type { FetchPolicy, FetchView, PartitionPolicy } from '../../editors/fetch/policy.ts'
import type { Connection } from '../../pipeline/connection.ts'
import { bucketOf } from '../../records/hashes/buckets.ts'
import { type RangeOwner, type RangeRule, rangeOwners } from './policy.ts'

/** What the API and the metrics show of one rule. */
export interface RangeView {
  readonly group: string
  readonly clientId: string
  /** As in the configuration: `0000-7fff`. */
  readonly keys: readonly string[]
  readonly delivered: number
  readonly withheld: number
}

export class StaticRanges implements FetchPolicy {
  private readonly owners: ReadonlyMap<string, RangeOwner>
  private readonly fetchViews: ReadonlyMap<RangeOwner, FetchView>

  constructor(rules: readonly RangeRule[]) {
    this.owners = rangeOwners(rules)
    this.fetchViews = new Map([...this.owners.values()].map((owner) => [owner, viewOf(owner)]))
  }

  view(connection: Connection): FetchView | undefined {
    const owner = this.ownerOf(connection)
    return owner === undefined ? undefined : this.fetchViews.get(owner)
  }

  /** The rule that this connection's consumer is under; undefined: none. */
  ownerOf(connection: Connection): RangeOwner | undefined {
    if (connection.clientId === null) return undefined
    const owner = this.owners.get(connection.clientId)
    const groups = connection.instance?.memberships.keys() ?? []
    return owner?.appliesTo(groups) === true ? owner : undefined
  }

  views(): RangeView[] {
    return [...this.owners.values()].map(({ rule, counted }) => ({
      group: rule.group.source,
      clientId: rule.clientId,
      keys: rule.ranges.map(({ first, last }) => `${hex(first)}-${hex(last)}`),
      ...counted,
    }))
  }
}

function viewOf(owner: RangeOwner): FetchView {
  const { has, counted } = owner
  const policy: PartitionPolicy = {
    keep: (record) => has[bucketOf(record)] === 1,
    count: (delivered, withheld) => {
      counted.delivered += delivered
      counted.withheld += withheld
    },
  }
  return { partition: () => policy }
}

function hex(bucket: number): string {
  return bucket.toString(16).padStart(4, '0')
}
