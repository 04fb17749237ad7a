/** What the gates count, for the metrics. */
import type { MetricSource } from '../../../telemetry/meter.ts'
import type { GroupGates } from './group-gates.ts'

export class GateCounts {
  /** Instances that were let through because no group of theirs was seen. */
  unknownGroups = 0
  readonly byPolicy = { position: 0, after: 0 }
  /** Fetches of partitions that passed with the last known layout, because the state was lost (`stateLoss: pass`). */
  readonly stateLost = new Map<string, number>()
  /** Seconds of groups that are forgotten by now, by topic. */
  readonly heldBefore = new Map<string, number>()

  opened(policy: 'position' | 'after'): void {
    this.byPolicy[policy]++
  }

  passedBlind(topic: string): void {
    this.stateLost.set(topic, (this.stateLost.get(topic) ?? 0) + 1)
  }

  retire(topic: string, seconds: number): void {
    this.heldBefore.set(topic, (this.heldBefore.get(topic) ?? 0) + seconds)
  }
}

/** Metrics of the gates; topics in labels are those with a rule. */
export function gateMetrics(gates: GroupGates): MetricSource[] {
  const { counts } = gates
  return [
    {
      name: 'gates_shut',
      help: 'Partitions with records that wait behind a gate, added up over the groups that read here.',
      type: 'gauge',
      read: () => gates.held().map(({ topic, shut }) => ({ labels: { topic }, value: shut })),
    },
    {
      name: 'gate_held_seconds_total',
      help: 'Seconds for which partitions were shut to groups that read here, added up over both.',
      type: 'counter',
      read: () => gates.held().map(({ topic, heldSeconds }) => ({ labels: { topic }, value: heldSeconds })),
    },
    {
      name: 'gate_unknown_group_total',
      help: 'Clients that were let through a gate because no group of theirs was seen in time.',
      type: 'counter',
      read: () => [{ labels: {}, value: counts.unknownGroups }],
    },
    {
      name: 'gates_opened_by_policy_total',
      help: 'Boundaries that a group was taken to have passed by its gate policy, not by its commits.',
      type: 'counter',
      read: () => Object.entries(counts.byPolicy).map(([policy, value]) => ({ labels: { policy }, value })),
    },
    {
      name: 'gate_start_commits_total',
      help: 'Start positions committed for groups that had nothing committed of a partition that a gate waits for.',
      type: 'counter',
      read: () => [{ labels: {}, value: gates.startCommits.count }],
    },
    {
      name: 'gate_state_lost_total',
      help: 'Partitions fetched by the last known layout while the state could not be had (stateLoss: pass).',
      type: 'counter',
      read: () => [...counts.stateLost].map(([topic, value]) => ({ labels: { topic }, value })),
    },
  ]
}
