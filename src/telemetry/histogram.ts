/**
 * A histogram of durations in a typed array: log-linear, four steps per doubling, from 1/64 ms to nine hours. Recording
 * allocates nothing. An upper bound belongs to its bucket, as Prometheus wants it, so the exported counts are exact.
 */

const unitsPerMs = 64
const stepsPerDoubling = 4
const maxUnits = 2 ** 31 - 1
const buckets = bucketOf(maxUnits) + 1

/** Bounds in seconds of the exported buckets: 0.25 ms, doubling up to 32.768 s. */
export const exportedBounds: readonly number[] = Array.from({ length: 18 }, (_, index) => (0.25 * 2 ** index) / 1000)

export class LatencyHistogram {
  private readonly counts = new Float64Array(buckets)
  private totalMs = 0
  private total = 0

  /** Counts one duration in milliseconds; what is negative or not a number counts as 0. */
  record(ms: number): void {
    const units = ms > 0 ? Math.min(Math.ceil(ms * unitsPerMs) - 1, maxUnits) : 0
    const bucket = bucketOf(units)
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.totalMs += ms > 0 ? ms : 0
    this.total++
  }

  get count(): number {
    return this.total
  }

  get sumSeconds(): number {
    return this.totalMs / 1000
  }

  /** For each of `exportedBounds`: how many durations were at most that long. */
  cumulative(): number[] {
    const result: number[] = []
    let bucket = 0
    let sum = 0
    for (const bound of exportedBounds) {
      const end = bucketOf(Math.round(bound * 1000 * unitsPerMs))
      for (; bucket < end; bucket++) sum += this.counts[bucket] ?? 0
      result.push(sum)
    }
    return result
  }

  /** Adds everything `other` has recorded. */
  add(other: LatencyHistogram): void {
    for (let bucket = 0; bucket < buckets; bucket++) {
      this.counts[bucket] = (this.counts[bucket] ?? 0) + (other.counts[bucket] ?? 0)
    }
    this.totalMs += other.totalMs
    this.total += other.total
  }

  /** Upper bound in milliseconds of the bucket that holds the share `q` (0…1); at most 25 % too high. 0 when empty. */
  quantileMs(q: number): number {
    const wanted = Math.max(1, Math.ceil(q * this.total))
    let sum = 0
    for (let bucket = 0; bucket < buckets && this.total > 0; bucket++) {
      sum += this.counts[bucket] ?? 0
      if (sum >= wanted) return firstOf(bucket + 1) / unitsPerMs
    }
    return 0
  }
}

/** Bucket of an integer number of units: 0…3 have their own, then four per doubling. */
function bucketOf(units: number): number {
  if (units < stepsPerDoubling) return units
  const exponent = 31 - Math.clz32(units)
  return (exponent - 1) * stepsPerDoubling + ((units >> (exponent - 2)) & 3)
}

/** The smallest number of units in a bucket. */
function firstOf(bucket: number): number {
  if (bucket < stepsPerDoubling) return bucket
  return 2 ** (Math.floor(bucket / stepsPerDoubling) - 1) * (stepsPerDoubling + (bucket % stepsPerDoubling))
}
