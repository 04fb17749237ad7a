/** A dense number for each (api key, version) that exists, so that counters by API are array slots. Slot 0 is "other". */
import { apis } from '../protocol/api-table.ts'

interface Slot {
  readonly api: string
  readonly version: string
}

const slots: Slot[] = [{ api: 'other', version: 'other' }]
const highestKey = Math.max(...apis.map((api) => api.key))
const firstSlot = new Uint16Array(highestKey + 1)
const versions = new Uint8Array(highestKey + 1)

for (const { key, name, maxVersion } of apis) {
  firstSlot[key] = slots.length
  versions[key] = maxVersion + 1
  for (let version = 0; version <= maxVersion; version++) slots.push({ api: name, version: String(version) })
}

/** API name and version of every slot. Bounded by the API table, whatever clients send. */
export const apiSlots: readonly Slot[] = slots

export function apiSlot(apiKey: number, apiVersion: number): number {
  return apiVersion >= 0 && apiVersion < (versions[apiKey] ?? 0) ? (firstSlot[apiKey] ?? 0) + apiVersion : 0
}

/** Rows for arrays by API alone: the key itself, and one last row for keys outside the table. */
export const apiRows = highestKey + 2

export function apiRow(apiKey: number): number {
  return apiKey >= 0 && apiKey <= highestKey && versions[apiKey] !== 0 ? apiKey : highestKey + 1
}

export const apiRowNames: readonly string[] = Array.from(
  { length: apiRows },
  (_, row) => apis.find((api) => api.key === row)?.name ?? 'other',
)
