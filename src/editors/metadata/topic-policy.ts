/** What a feature tells the topic view: how many partitions of a topic a client may see in Metadata. */
import type { Connection } from '../../pipeline/connection.ts'

/** A topic in an answer, as the broker gave it. */
export interface ListedTopic {
  readonly name: string
  /** The zero id before Metadata v10. */
  readonly topicId: string
  /** 0: the answer does not tell. */
  readonly count: number
  /** The client asked for it, and not for all topics there are. */
  readonly isNamed: boolean
}

/**
 * A number: the first so many partitions. `wait`: the answer is held, and asked about again when something has changed.
 * `unavailable`: error 5 and no partition, upon which clients ask again.
 */
export type Showing = number | 'wait' | 'unavailable'

/** One topic in one answer to one client. */
export interface TopicShowing {
  /** Asked until it does not say `wait`; it may not any more when `isOverdue`. */
  decide(isOverdue: boolean): Showing
  /** The answer goes out now, with this many partitions. */
  shown(count: number): void
}

export interface TopicPolicy {
  /** Asked for every topic of every Metadata answer; undefined: it goes as it is. */
  topic(connection: Connection, topic: ListedTopic): TopicShowing | undefined
  /** Told when something that waits may go on. */
  onChange(listener: () => void): void
  closed(connection: Connection): void
}
