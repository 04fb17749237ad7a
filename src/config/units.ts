/** Durations and sizes as people write them (`10s`, `100MiB`), turned into the milliseconds and bytes the code uses. */

const milliseconds: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const bytes: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1000,
  mb: 1000 ** 2,
  gb: 1000 ** 3,
}

/** Milliseconds of `500ms`, `10s`, `1.5m`, `2h`, `1d` or a plain number of milliseconds; undefined if it is none of these. */
export function parseDuration(text: string | number): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(String(text).trim())
  if (!match) return undefined
  const value = Number(match[1]) * (milliseconds[match[2] ?? 'ms'] ?? 1)
  return Number.isSafeInteger(Math.round(value)) ? Math.round(value) : undefined
}

/** As it would be written: `2m`, `90s`, `1500ms`. */
export function durationText(ms: number): string {
  const units = Object.entries(milliseconds).reverse()
  const [unit, size] = units.find(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

/** Bytes of `64KiB`, `100MiB`, `1GiB`, `10MB`, `64k` (binary) or a plain number of bytes; undefined if it is none of these. */
export function parseSize(text: string | number): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(String(text).trim())
  const unit = bytes[(match?.[2] ?? '').toLowerCase()]
  if (!match || unit === undefined) return undefined
  const value = Math.round(Number(match[1]) * unit)
  return Number.isSafeInteger(value) ? value : undefined
}
