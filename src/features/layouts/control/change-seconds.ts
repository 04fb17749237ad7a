/** How long changes have been under way, as a metric: what an alert on a change that does not end looks at. */
import type { MetricSource } from '../../../telemetry/meter.ts'
import type { LayoutControl } from './layout-control.ts'
import { phaseOf, phaseSince } from './topic-view.ts'

export function changeSeconds(control: LayoutControl, clock: { wallNow(): number }): MetricSource {
  return {
    name: 'layout_change_seconds',
    help: 'Seconds since a change of a topic began its present phase; none while the topic is settled.',
    type: 'gauge',
    read: () =>
      control.all().flatMap(({ topic }) => {
        const state = topic.view()?.topic
        const phase = phaseOf(state)
        if (state === undefined || phase === 'settled') return []
        const seconds = Math.max(0, clock.wallNow() - phaseSince(state)) / 1000
        return [{ labels: { topic: topic.name, phase }, value: seconds }]
      }),
  }
}
