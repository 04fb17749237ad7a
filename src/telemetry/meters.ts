/** All counters of the process: one `NodeMeter` per (listener, node), made when first asked for. */
import { LatencyHistogram } from './histogram.ts'
import type { Meters, MetricSource } from './meter.ts'
import { ListenerLatency, NodeMeter } from './node-meter.ts'

export class SlotMeters implements Meters {
  private readonly byListener = new Map<string, { latencies: ListenerLatency; nodes: Map<number, NodeMeter> }>()
  private readonly sources: MetricSource[] = []

  meter(listener: string, nodeId: number): NodeMeter {
    let entry = this.byListener.get(listener)
    if (!entry) this.byListener.set(listener, (entry = { latencies: new ListenerLatency(), nodes: new Map() }))
    let meter = entry.nodes.get(nodeId)
    if (!meter) entry.nodes.set(nodeId, (meter = new NodeMeter(listener, nodeId, entry.latencies)))
    return meter
  }

  publish(source: MetricSource): void {
    this.sources.push(source)
  }

  get published(): readonly MetricSource[] {
    return this.sources
  }

  /** Every (listener, node) seen so far. */
  nodes(): NodeMeter[] {
    return [...this.byListener.values()].flatMap(({ nodes }) => [...nodes.values()])
  }

  listeners(): { listener: string; latencies: ListenerLatency }[] {
    return [...this.byListener].map(([listener, { latencies }]) => ({ listener, latencies }))
  }

  /** Latency of everything but long polls, over all listeners and APIs. */
  overall(): { proxy: LatencyHistogram; broker: LatencyHistogram } {
    const sum = { proxy: new LatencyHistogram(), broker: new LatencyHistogram() }
    for (const { latencies } of this.listeners()) {
      for (const part of ['proxy', 'broker'] as const) {
        for (const histogram of latencies[part]) if (histogram) sum[part].add(histogram)
      }
    }
    return sum
  }
}
