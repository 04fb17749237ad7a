/** What the configuration says of a topic with layouts, and how the parts of the feature find such topics. */
import type { Connection } from '../../pipeline/connection.ts'
import type { Order } from '../../state/record.ts'
import type { View } from '../../state/view.ts'
import type { PartitionerSetting } from './partitioners.ts'

/** One entry of `topics.<regex>.layouts`. */
export interface TopicRule {
  /** Matches the whole name. */
  readonly topic: RegExp
  readonly partitioner: PartitionerSetting
  readonly order: Order
  /** Seals a change after this long whoever is missing; undefined: never. */
  readonly sealAfterMs: number | undefined
  readonly goneAfterMs: number
  /** `refuse`: late batches are refused for good (37), never for the two families that this breaks. */
  readonly late: 'accept' | 'refuse'
  /** What becomes of the topic's requests while the state cannot be had. */
  readonly stateLoss: 'hold' | 'pass'
}

/** One entry of `groups.<regex>.gate`: when gates open for a group that never commits to Kafka. */
export interface GateRule {
  readonly group: RegExp
  /** `position`: when its Fetch has passed the boundary; a number: this many milliseconds after the gate was met. */
  readonly gate: 'block' | 'position' | number
}

/** A topic that exists and has a rule. */
export interface LayoutTopic {
  readonly name: string
  readonly topicId: string
  readonly rule: TopicRule
  /** The partitions that the cluster has, as far as is known: hidden ones too. */
  readonly count: number
  /** undefined: the state does not know it yet, or may not be acted upon now. */
  view(): View | undefined
}

export interface LayoutTopics {
  /** Enough is known of the cluster: an id that was not met has no rule. */
  readonly isLoaded: boolean
  /**
   * Whether what `find` does not know may be a topic with a rule all the same. No for a name if the cluster has no such
   * topic; for an id after some seconds, and for ever, unless the log knows it.
   * @param connection of the client that named it, on which it may be asked for
   */
  mayBeRuled(name: string, topicId: string, connection: Connection | undefined): boolean
  /** Told when an id that was asked for was found. */
  onNamed(listener: () => void): void
  /** The rule for a name, whether or not such a topic is known. */
  rule(name: string): TopicRule | undefined
  /** By name or, where that is empty (Fetch v13+, Produce v13+), by id. undefined: the topic has no rule. */
  find(name: string, topicId: string): LayoutTopic | undefined
  all(): Iterable<LayoutTopic>
}
