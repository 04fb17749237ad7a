/** What static key ranges have delivered and withheld, for Prometheus. The labels come from the configuration. */
import type { MetricSource } from '../../telemetry/meter.ts'
import type { StaticRanges } from './feature.ts'

export function rangeRecords(ranges: StaticRanges): MetricSource {
  return {
    name: 'range_records_total',
    help: 'Records of partitions read for a consumer with static key ranges, by what became of them.',
    type: 'counter',
    read: () =>
      ranges.views().flatMap(({ clientId, delivered, withheld }) => [
        { labels: { client_id: clientId, outcome: 'delivered' }, value: delivered },
        { labels: { client_id: clientId, outcome: 'withheld' }, value: withheld },
      ]),
  }
}
