/** Metrics of the state log and the fleet. */
import type { MetricSource } from '../../telemetry/meter.ts'
import { withOtherRules } from '../state.ts'
import { problemSources } from './problems.ts'
import type { StateShell } from './state-shell.ts'

export function stateMetrics(state: StateShell): MetricSource[] {
  const gauge = (name: string, help: string, value: () => number): MetricSource => ({
    name,
    help,
    type: 'gauge',
    read: () => [{ labels: {}, value: value() }],
  })
  return [
    gauge(
      'state_lease_valid',
      '1 while this proxy may act on the state log (registered, heartbeat and read fresh), else 0.',
      () => (state.mayAct() ? 1 : 0),
    ),
    gauge(
      'state_log_position',
      'Offset up to which the state log was read and confirmed.',
      () => state.counts().position,
    ),
    gauge('fleet_proxies', 'Proxies registered in the state log.', () => state.status().proxies.length),
    gauge(
      'fleet_other_rules',
      'Proxies of the fleet whose rules for topics or groups differ from those of this one.',
      () => withOtherRules(state.status()).length,
    ),
    gauge('fleet_coordinator', '1 while this proxy coordinates the fleet, else 0.', () => (state.isLeader() ? 1 : 0)),
    {
      name: 'state_appends_total',
      help: 'Records for the state log: result acknowledged, or dropped after a failed Produce (asked for again).',
      type: 'counter',
      read: () => {
        const { appended, dropped } = state.counts()
        return [
          { labels: { result: 'acknowledged' }, value: appended },
          { labels: { result: 'dropped' }, value: dropped },
        ]
      },
    },
    {
      name: 'state_problem',
      help: '1 while the state cannot be used and this is wrong: reading the log, the group, appends. The log says what.',
      type: 'gauge',
      read: () =>
        problemSources.map((source) => ({
          labels: { source },
          value: !state.mayAct() && state.counts().problems.has(source) ? 1 : 0,
        })),
    },
  ]
}
