/** What a feature may change of the assignment that a consumer group's leader makes. */

/** One member of a group: what it subscribed to, what the leader gives it, and what it said it still owns. */
export interface MemberShare {
  readonly member: string
  /** Topics it subscribed to. */
  readonly topics: readonly string[]
  /** Topic → partitions given by the leader. */
  readonly assigned: Readonly<Record<string, readonly number[]>>
  /** Topic → partitions it says it owns (subscription v1 and later; empty for eager members). */
  readonly owned: Readonly<Record<string, readonly number[]>>
}

export interface AssignmentPolicy {
  /** Whether some group's assignment may have to change now: asked for every generation, so it must be cheap. */
  watches(): boolean
  /**
   * The shares of all members as they are to be; the same array where nothing changes. `assignor`: the protocol name
   * that the group chose. Called once per generation, when its leader sends the assignment.
   */
  plan(group: string, assignor: string, shares: readonly MemberShare[]): readonly MemberShare[]
}
