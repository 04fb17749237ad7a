/** The time bounds of the layout protocol, in milliseconds, with where each comes from. */
export interface LayoutTimes {
  /** Quiet before an instance is clean: the longest a refreshed client keeps a batch of the old layout in its queue. */
  readonly quietMs: number
  /** How long a batch that failed may take to come back (franz-go: 5 s, with room). */
  readonly comeBackMs: number
  /** How long an instance that left unclean, or a proxy that died without a vote, is waited for. */
  readonly goneAfterMs: number
  /** After this a change is sealed whoever is missing; what then still comes is counted. Undefined: never. */
  readonly sealAfterMs: number | undefined
  /** Quiet of one instance before its cut. */
  readonly cutQuietMs: number
  /**
   * How long a cut waits for a batch that failed: most come back within their retry back-off (0.1 to 1 s), franz-go after
   * 5 s, kafkajs before its last attempt after 5.8 s. One that comes later is counted as late after its cut.
   */
  readonly cutComeBackMs: number
  /**
   * Longest wait for that quiet; afterwards the cut is taken and counted. Longer than `cutComeBackMs` and `cutQuietMs`, so
   * that a batch which never returns is no reason to count; and the cut has to be in force, a second later, before the
   * last attempt of a client that is refused meanwhile instead of held: kafkajs makes it after 7.4 s at the earliest
   * (0.3, 0.6, 1.2, 2.4 and 4.8 s, a fifth more or less), then its send fails.
   */
  readonly cutBoundMs: number
  /** Longest a batch is held for whatever reason: every client family stands 9 s. */
  readonly holdBoundMs: number
  /** Longest that Metadata of a topic is held while a change is prepared. */
  readonly prepareBoundMs: number
  /** After the seal, how long batches of the old layout are still looked for: the longest Metadata age. */
  readonly settleMs: number
  /** A record that was not read back after this time is appended again. */
  readonly retryMs: number
  /** How often it is looked whether cuts can be forgotten. */
  readonly pruneMs: number
}

export const defaultTimes: LayoutTimes = {
  quietMs: 3_000,
  comeBackMs: 10_000,
  goneAfterMs: 120_000,
  sealAfterMs: undefined,
  cutQuietMs: 500,
  cutComeBackMs: 5_800,
  cutBoundMs: 6_300,
  holdBoundMs: 9_000,
  prepareBoundMs: 10_000,
  settleMs: 600_000,
  retryMs: 1_000,
  pruneMs: 60_000,
}
