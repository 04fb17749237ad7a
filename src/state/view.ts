/** What a confirmed read of the state log's end shows of one topic: the only thing a feature may act upon. */
import type { FleetState } from './fleet.ts'
import type { TopicState } from './topic-state.ts'

/** What the log says, up to `position`. */
export interface View {
  readonly topic: TopicState
  readonly fleet: FleetState
  readonly position: number
}
