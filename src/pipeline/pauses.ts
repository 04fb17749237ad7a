/** Pausing one socket and counting for how long and why; the time in which we pause does not count against the peer. */
import type { FrameReader } from '../net/frame-reader.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Socket } from '../runtime/socket.ts'
import type { Meter, PausedFor } from '../telemetry/meter.ts'

export class Pause {
  private readonly runtime: Runtime
  private readonly meter: Meter
  private readonly reader: FrameReader
  private what: PausedFor | undefined
  private since = 0

  constructor(runtime: Runtime, meter: Meter, reader: FrameReader) {
    this.runtime = runtime
    this.meter = meter
    this.reader = reader
  }

  get active(): boolean {
    return this.what !== undefined
  }

  begin(socket: Socket | undefined, what: PausedFor): void {
    if (this.what !== undefined || socket === undefined) return
    this.what = what
    this.since = this.runtime.now()
    socket.pause()
  }

  end(socket: Socket | undefined): void {
    if (this.what === undefined) return
    const pausedMs = this.runtime.now() - this.since
    this.meter.paused(this.what, pausedMs / 1000)
    this.what = undefined
    this.reader.shift(pausedMs)
    socket?.resume()
  }
}
