/** What a feature tells the CreatePartitions editor: which topics it changes itself, and what became of a change. */

/** A topic of a request that the broker would have granted to this client. */
export interface PartitionRequest {
  readonly topic: string
  readonly count: number
  /** Who asks, for the log. */
  readonly client: string
  /** The client said which brokers they are for. */
  readonly assigned: boolean
  /** Creates what is missing on the client's own connection, under its name and rights. Rejects with the broker's error. */
  create(): Promise<void>
}

export interface PartitionAnswer {
  readonly errorCode: number
  readonly errorMessage: string | null
}

export interface PartitionPolicy {
  /** Whether a change of this topic's count is the feature's. */
  guards(topic: string): boolean
  /** How many partitions there are, with those that clients are not shown. */
  exists(topic: string): Promise<number>
  /** Changes the count. Resolves when clients are shown it, or with the error that they get. */
  raise(request: PartitionRequest): Promise<PartitionAnswer>
}
