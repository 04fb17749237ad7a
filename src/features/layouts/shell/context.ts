/** What the guards of all topics share. */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import type { LayoutTimes } from '../times.ts'
import type { TopicRule } from '../topic-rule.ts'
import type { Counters, CutWaits } from './counters.ts'
import type { Writers } from './writers.ts'

export interface GuardContext {
  readonly state: State
  readonly cluster: Cluster
  readonly runtime: Runtime
  readonly writers: Writers
  /** Order that may be lost, by reason. */
  readonly counted: Counters
  /** Batches answered with an error, by reason. */
  readonly refused: Counters
  readonly pushed: Counters
  /** How long producers waited for their cuts. */
  readonly cuts: CutWaits
  timesOf(rule: TopicRule): LayoutTimes
  /** As the state says, or said in this millisecond: asked for every Produce. */
  mayAct(): boolean
  /** The state has been away for so long that the rule lets requests pass without it. */
  passesWithoutState(rule: TopicRule): boolean
  /** Somebody needs ticks. */
  wake(): void
}
