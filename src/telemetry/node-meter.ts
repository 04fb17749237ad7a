/**
 * The counters of one (listener, node), in typed arrays: a count is an addition, nothing is allocated except once per
 * API and error. Only ever counted up, save `inFlight`; connections active are always opened − closed.
 */
import { apiRow, apiRows, apiSlot, apiSlots } from './api-slots.ts'
import { LatencyHistogram } from './histogram.ts'
import { type CloseReason, closeReasons, type Meter, type PausedFor } from './meter.ts'

/** Codes −1 … `lastErrorCode` have a slot each (code + 1), whatever lies outside shares the one behind them. */
export const lastErrorCode = 157
const errorSlots = lastErrorCode + 3

export const pauseCauses = ['upstream', 'downstream', 'hold'] as const satisfies readonly PausedFor[]

const reasonSlot = Object.fromEntries(closeReasons.map((reason, slot) => [reason, slot])) as Record<CloseReason, number>
const causeSlot: Readonly<Record<PausedFor, number>> = { upstream: 0, downstream: 1, hold: 2 }

/** Latency by API, shared by the nodes of a listener. */
export class ListenerLatency {
  readonly proxy = new Array<LatencyHistogram | undefined>(apiRows)
  readonly broker = new Array<LatencyHistogram | undefined>(apiRows)
  readonly longPollProxy = new Array<LatencyHistogram | undefined>(apiRows)
  readonly longPollBroker = new Array<LatencyHistogram | undefined>(apiRows)
}

export class NodeMeter implements Meter {
  readonly listener: string
  readonly nodeId: number
  readonly latencies: ListenerLatency
  readonly brokerLatency = new LatencyHistogram()
  readonly closedBy = new Float64Array(closeReasons.length)
  readonly requests = new Float64Array(apiSlots.length)
  readonly requestBytes = new Float64Array(apiSlots.length)
  readonly responses = new Float64Array(apiSlots.length)
  readonly responseBytes = new Float64Array(apiSlots.length)
  readonly undecodables = new Float64Array(apiSlots.length)
  readonly pausedSeconds = new Float64Array(pauseCauses.length)
  /** By API row, then error code + 1; a row exists once the API had an error. */
  readonly errors = new Array<Float64Array | undefined>(apiRows)
  openedTotal = 0
  inFlightNow = 0

  constructor(listener: string, nodeId: number, latencies: ListenerLatency) {
    this.listener = listener
    this.nodeId = nodeId
    this.latencies = latencies
  }

  opened(): void {
    this.openedTotal++
  }

  closed(reason: CloseReason): void {
    add(this.closedBy, reasonSlot[reason], 1)
  }

  request(apiKey: number, apiVersion: number, bytes: number): void {
    const slot = apiSlot(apiKey, apiVersion)
    add(this.requests, slot, 1)
    add(this.requestBytes, slot, bytes)
  }

  response(apiKey: number, apiVersion: number, bytes: number): void {
    const slot = apiSlot(apiKey, apiVersion)
    add(this.responses, slot, 1)
    add(this.responseBytes, slot, bytes)
  }

  latency(apiKey: number, proxyMs: number, brokerMs: number, longPoll: boolean): void {
    const row = apiRow(apiKey)
    const { latencies } = this
    histogramAt(longPoll ? latencies.longPollProxy : latencies.proxy, row).record(proxyMs)
    histogramAt(longPoll ? latencies.longPollBroker : latencies.broker, row).record(brokerMs)
    if (!longPoll) this.brokerLatency.record(brokerMs)
  }

  error(apiKey: number, code: number): void {
    const row = apiRow(apiKey)
    const counts = (this.errors[row] ??= new Float64Array(errorSlots))
    add(counts, code < -1 || code > lastErrorCode ? errorSlots - 1 : code + 1, 1)
  }

  inFlight(change: number): void {
    this.inFlightNow += change
  }

  paused(what: PausedFor, seconds: number): void {
    add(this.pausedSeconds, causeSlot[what], seconds)
  }

  undecodable(apiKey: number, apiVersion: number): void {
    add(this.undecodables, apiSlot(apiKey, apiVersion), 1)
  }

  get closedTotal(): number {
    return this.closedBy.reduce((sum, count) => sum + count, 0)
  }

  get active(): number {
    return this.openedTotal - this.closedTotal
  }
}

function add(counts: Float64Array, slot: number, amount: number): void {
  counts[slot] = (counts[slot] ?? 0) + amount
}

function histogramAt(rows: (LatencyHistogram | undefined)[], row: number): LatencyHistogram {
  return (rows[row] ??= new LatencyHistogram())
}
