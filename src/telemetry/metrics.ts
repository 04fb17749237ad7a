/**
 * The metrics page: reads the slots out when scraped and lets prom-client write the text. Labels are bounded by the
 * configuration (listeners), the cluster (nodes), the API table and fixed lists; clients cannot add series.
 */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import { errorName } from '../protocol/error-codes.ts'
import { apiRowNames, apiSlots } from './api-slots.ts'
import { exportedBounds, type LatencyHistogram } from './histogram.ts'
import { closeReasons } from './meter.ts'
import type { SlotMeters } from './meters.ts'
import { lastErrorCode, type ListenerLatency, type NodeMeter, pauseCauses } from './node-meter.ts'

type Labels = Readonly<Record<string, string>>
interface Sample {
  metricName?: string
  labels: Labels
  value: number
}
type Kind = 'counter' | 'gauge' | 'histogram'

/** What prom-client's registry asks of a metric. Its own classes cost 0.5 µs per count; ours only lend it values. */
class Family {
  readonly name: string
  readonly help: string
  readonly type: Kind
  private readonly read: () => Iterable<Sample>

  constructor(name: string, help: string, type: Kind, read: () => Iterable<Sample>) {
    this.name = name
    this.help = help
    this.type = type
    this.read = read
  }

  async get(): Promise<object> {
    return { name: this.name, help: this.help, type: this.type, values: [...this.read()], aggregator: 'sum' }
  }
}

export interface BuildInfo {
  readonly version: string
  readonly node: string
}

/** Registers every metric of Headgate and of the process. Call once per process: garbage collection is observed. */
export function createRegistry(meters: SlotMeters, build: BuildInfo, isReady: () => boolean): Registry {
  const registry = new Registry()
  const one = (labels: Labels, value: number): Sample[] => [{ labels, value }]
  const families = [
    new Family('headgate_build_info', 'Version of Headgate and of Node; the value is always 1.', 'gauge', () =>
      one({ ...build }, 1),
    ),
    new Family('headgate_ready', '1 while /readyz answers 200, else 0.', 'gauge', () => one({}, isReady() ? 1 : 0)),
    ...meters.published.map(
      (source) => new Family(`headgate_${source.name}`, source.help, source.type, () => source.read()),
    ),
    ...connectionFamilies(meters),
    ...trafficFamilies(meters),
    ...latencyFamilies(meters),
  ]
  for (const family of families) registry.registerMetric(family as unknown as Metric)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 })
  return registry
}

function connectionFamilies(meters: SlotMeters): Family[] {
  const perNode = (value: (meter: NodeMeter) => number) => () =>
    meters.nodes().map((meter) => ({ labels: nodeLabels(meter), value: value(meter) }))
  return [
    new Family(
      'headgate_connections_opened_total',
      'Client connections accepted.',
      'counter',
      perNode((meter) => meter.openedTotal),
    ),
    new Family('headgate_connections_closed_total', 'Client connections that ended, by reason.', 'counter', () =>
      meters
        .nodes()
        .flatMap((meter) => nonZero(meter, meter.closedBy, (slot) => ({ reason: closeReasons[slot] ?? '' }))),
    ),
    new Family(
      'headgate_connections_active',
      'Client connections open now: opened minus closed.',
      'gauge',
      perNode((meter) => meter.active),
    ),
    new Family(
      'headgate_requests_in_flight',
      'Requests sent to the broker and not answered yet.',
      'gauge',
      perNode((meter) => meter.inFlightNow),
    ),
    new Family(
      'headgate_paused_seconds_total',
      'Time in which a connection was not read: cause upstream: the broker did not keep up; downstream: the client did not; hold: a request was held.',
      'counter',
      () =>
        meters
          .nodes()
          .flatMap((meter) => nonZero(meter, meter.pausedSeconds, (slot) => ({ cause: pauseCauses[slot] ?? '' }))),
    ),
  ]
}

function trafficFamilies(meters: SlotMeters): Family[] {
  const perApi = (name: string, help: string, counts: (meter: NodeMeter) => Float64Array) =>
    new Family(name, help, 'counter', () =>
      meters.nodes().flatMap((meter) => nonZero(meter, counts(meter), (slot) => ({ ...apiSlots[slot] }))),
    )
  return [
    perApi('headgate_requests_total', 'Requests read from clients.', (meter) => meter.requests),
    perApi(
      'headgate_request_bytes_total',
      'Bytes of these requests, length field included.',
      (meter) => meter.requestBytes,
    ),
    perApi('headgate_responses_total', 'Responses passed to clients or made for them.', (meter) => meter.responses),
    perApi(
      'headgate_response_bytes_total',
      'Bytes of these responses, length field included.',
      (meter) => meter.responseBytes,
    ),
    perApi(
      'headgate_undecodable_frames_total',
      'Frames passed on untouched because they could not be decoded.',
      (meter) => meter.undecodables,
    ),
    new Family('headgate_errors_total', 'Error codes other than NONE in responses, by Kafka’s name.', 'counter', () =>
      meters.nodes().flatMap((meter) => errorSamples(meter)),
    ),
  ]
}

function latencyFamilies(meters: SlotMeters): Family[] {
  const perApi = (name: string, help: string, part: keyof ListenerLatency) =>
    new Family(name, help, 'histogram', () =>
      meters
        .listeners()
        .flatMap(({ listener, latencies }) =>
          latencies[part].flatMap((histogram, row) =>
            histogram ? bucketSamples(name, { listener, api: apiRowNames[row] ?? 'other' }, histogram) : [],
          ),
        ),
    )
  const perNode = 'headgate_node_broker_seconds'
  return [
    perApi('headgate_proxy_seconds', 'Time that Headgate added to a request and its response.', 'proxy'),
    perApi(
      'headgate_broker_seconds',
      'Time from sending a request to the broker until its response arrived.',
      'broker',
    ),
    perApi(
      'headgate_long_poll_proxy_seconds',
      'As headgate_proxy_seconds, for requests that wait by design (Fetch, JoinGroup, SyncGroup).',
      'longPollProxy',
    ),
    perApi(
      'headgate_long_poll_broker_seconds',
      'As headgate_broker_seconds, for requests that wait by design (Fetch, JoinGroup, SyncGroup).',
      'longPollBroker',
    ),
    new Family(perNode, 'As headgate_broker_seconds, by node: shows the slow broker.', 'histogram', () =>
      meters
        .nodes()
        .filter((meter) => meter.brokerLatency.count > 0)
        .flatMap((meter) => bucketSamples(perNode, nodeLabels(meter), meter.brokerLatency)),
    ),
  ]
}

function nodeLabels({ listener, nodeId }: NodeMeter): Labels {
  return { listener, node: nodeId === -1 ? 'bootstrap' : String(nodeId) }
}

function nonZero(meter: NodeMeter, counts: Float64Array, labels: (slot: number) => Labels): Sample[] {
  const base = nodeLabels(meter)
  const samples: Sample[] = []
  counts.forEach((value, slot) => {
    if (value !== 0) samples.push({ labels: { ...base, ...labels(slot) }, value })
  })
  return samples
}

function errorSamples(meter: NodeMeter): Sample[] {
  return meter.errors.flatMap((counts, row) =>
    counts
      ? nonZero(meter, counts, (slot) => ({
          api: apiRowNames[row] ?? 'other',
          error: slot - 1 > lastErrorCode ? 'other' : errorName(slot - 1),
        }))
      : [],
  )
}

function bucketSamples(name: string, labels: Labels, histogram: LatencyHistogram): Sample[] {
  const counts = histogram.cumulative()
  return [
    ...exportedBounds.map((bound, index) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: String(bound) },
      value: counts[index] ?? 0,
    })),
    { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: histogram.count },
    { metricName: `${name}_sum`, labels, value: histogram.sumSeconds },
    { metricName: `${name}_count`, labels, value: histogram.count },
  ]
}
