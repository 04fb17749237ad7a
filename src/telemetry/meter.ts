/**
 * What the data path counts. The hot path adds to typed-array slots through these calls (about 10 ns each); the metrics
 * page reads them out when it is scraped.
 */

/** Why a client connection ended; also the metric label. */
export const closeReasons = [
  'client_closed',
  'broker_closed',
  'client_error',
  'broker_error',
  'broker_unreachable',
  'idle_timeout',
  'progress_timeout',
  'frame_too_large',
  'malformed_request',
  'malformed_response',
  'unsupported_api',
  'tls_on_plain_port',
  'http_on_kafka_port',
  'too_many_connections',
  'not_loopback',
  'refused_produce',
  'address_unavailable',
  'drained',
  'shutdown',
  'internal_error',
] as const
export type CloseReason = (typeof closeReasons)[number]

/** What reading was stopped for: the broker's side (`upstream`) or the client's (`downstream`) did not keep up, or a hold. */
export type PausedFor = 'upstream' | 'downstream' | 'hold'

/** The counters of one (listener, node) pair. `nodeId` −1 is the bootstrap address. */
export interface Meter {
  opened(): void
  closed(reason: CloseReason): void
  /** A request of a client was read completely; sizes include the 4 length bytes. */
  request(apiKey: number, apiVersion: number, bytes: number): void
  response(apiKey: number, apiVersion: number, bytes: number): void
  /**
   * Latency of one exchange in milliseconds: what the proxy added (request read → sent, answer read → sent) and what the
   * broker took. `longPoll`: requests that wait by design (Fetch, JoinGroup, SyncGroup), kept in series of their own.
   */
  latency(apiKey: number, proxyMs: number, brokerMs: number, longPoll: boolean): void
  /** A Kafka error code other than 0 in an answer. */
  error(apiKey: number, code: number): void
  /** Requests sent upstream and not yet answered: +1, −1. */
  inFlight(change: number): void
  paused(what: PausedFor, seconds: number): void
  /** A frame passed untouched because it could not be decoded. */
  undecodable(apiKey: number, apiVersion: number): void
}

/** Numbers that a feature keeps itself and that are read when the metrics are scraped. */
export interface MetricSource {
  /** Without the prefix `headgate_`; counters end in `_total`. */
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** Labels must be bounded: by the configuration, never by what clients send. */
  read(): readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]
}

export interface Meters {
  /** Exports what `source` reads. */
  publish(source: MetricSource): void
  /** The counters of a listener's node; the same object for the same pair. */
  meter(listener: string, nodeId: number): Meter
}
