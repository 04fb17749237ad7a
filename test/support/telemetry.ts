/** A meter and a log that remember what they were told. */
import type { Log } from '../../src/telemetry/log.ts'
import type { CloseReason, Meter, Meters, PausedFor } from '../../src/telemetry/meter.ts'

export class RecordingMeter implements Meter {
  openedCount = 0
  readonly reasons: CloseReason[] = []
  readonly requests: { apiKey: number; apiVersion: number; bytes: number }[] = []
  readonly responses: { apiKey: number; apiVersion: number; bytes: number }[] = []
  readonly latencies: { apiKey: number; proxyMs: number; brokerMs: number; longPoll: boolean }[] = []
  readonly errors: number[] = []
  readonly pauses: { what: PausedFor; seconds: number }[] = []
  readonly undecodables: { apiKey: number; apiVersion: number }[] = []
  flying = 0

  opened(): void {
    this.openedCount++
  }
  closed(reason: CloseReason): void {
    this.reasons.push(reason)
  }
  request(apiKey: number, apiVersion: number, bytes: number): void {
    this.requests.push({ apiKey, apiVersion, bytes })
  }
  response(apiKey: number, apiVersion: number, bytes: number): void {
    this.responses.push({ apiKey, apiVersion, bytes })
  }
  latency(apiKey: number, proxyMs: number, brokerMs: number, longPoll: boolean): void {
    this.latencies.push({ apiKey, proxyMs, brokerMs, longPoll })
  }
  error(_apiKey: number, code: number): void {
    this.errors.push(code)
  }
  inFlight(change: number): void {
    this.flying += change
  }
  paused(what: PausedFor, seconds: number): void {
    this.pauses.push({ what, seconds })
  }
  undecodable(apiKey: number, apiVersion: number): void {
    this.undecodables.push({ apiKey, apiVersion })
  }
}

/** One meter for all ports of a proxy. */
export class RecordingMeters implements Meters {
  /** Nothing is scraped here. */
  publish(): void {}

  readonly all = new RecordingMeter()

  meter(): Meter {
    return this.all
  }
}

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error'
  fields: Record<string, unknown>
  message: string
}

export class RecordingLog implements Log {
  readonly lines: LogLine[] = []

  debug(fields: object, message: string): void {
    this.add('debug', fields, message)
  }
  info(fields: object, message: string): void {
    this.add('info', fields, message)
  }
  warn(fields: object, message: string): void {
    this.add('warn', fields, message)
  }
  error(fields: object, message: string): void {
    this.add('error', fields, message)
  }

  private add(level: LogLine['level'], fields: object, message: string): void {
    this.lines.push({ level, fields: fields as Record<string, unknown>, message })
  }
}
