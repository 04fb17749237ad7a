/**
 * Static key ranges: a consumer that is configured to have only some buckets of every partition (the standalone mode of
 * the individual-commit proposal). Pure: which buckets a consumer has, and whether it is this consumer's Fetch at all.
 */
import { BUCKETS } from '../../records/hashes/buckets.ts'

/** Buckets `first` to `last`, both included. */
export interface BucketRange {
  readonly first: number
  readonly last: number
}

/** One entry of `groups.<regex>.ranges`. */
export interface RangeRule {
  /** Matches the whole group id. */
  readonly group: RegExp
  readonly clientId: string
  readonly ranges: readonly BucketRange[]
}

/** What was decided for a rule's records. */
export interface RangeCount {
  delivered: number
  withheld: number
}

export class RangeOwner {
  readonly rule: RangeRule
  readonly counted: RangeCount = { delivered: 0, withheld: 0 }
  /** 1 for each bucket that it has. */
  readonly has: Uint8Array

  constructor(rule: RangeRule) {
    this.rule = rule
    this.has = new Uint8Array(BUCKETS)
    for (const { first, last } of rule.ranges) this.has.fill(1, first, last + 1)
  }

  /**
   * Whether the rule is meant for a consumer that has shown these groups: any, if it has shown none (assign() without
   * commits shows none).
   * @param groups in the order in which they were seen
   */
  appliesTo(groups: Iterable<string>): boolean {
    let shown = false
    for (const group of groups) {
      if (this.rule.group.test(group)) return true
      shown = true
    }
    return !shown
  }
}

/** The rules by client id; a client id has one rule. */
export function rangeOwners(rules: readonly RangeRule[]): ReadonlyMap<string, RangeOwner> {
  return new Map(rules.map((rule) => [rule.clientId, new RangeOwner(rule)]))
}
