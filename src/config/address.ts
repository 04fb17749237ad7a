/** `host:port`, node ids and dial maps as they appear in the configuration. */

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** More node ids than this per listener are refused: each one is a port bound at start-up. */
export const maxNodeIds = 1000

/** Reads `host:port` or `[v6]:port`; ports from `minPort` (0 where "any free port" makes sense). Undefined if it is neither. */
export function parseHostPort(text: string, minPort = 1): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/,@]+)):(\d{1,5})$/.exec(text.trim())
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host !== undefined && port >= minPort && port <= 65_535 ? { host, port } : undefined
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** True for the addresses that mean "every interface": one can listen on them, but no client can connect to them. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === '*'
}

/** Node ids of `0-9`, `1,2,5-7`, a number, or a list of these; ascending, without doubles. Undefined if malformed. */
export function parseNodeIds(value: string | number | readonly (string | number)[]): readonly number[] | undefined {
  const parts = (typeof value === 'object' ? value : [value]).flatMap((part) => String(part).split(','))
  const ids = new Set<number>()
  for (const part of parts.map((text) => text.trim()).filter((text) => text !== '')) {
    const match = /^(\d{1,9})(?:\s*-\s*(\d{1,9}))?$/.exec(part)
    if (!match) return undefined
    const first = Number(match[1])
    const last = Number(match[2] ?? match[1])
    if (last < first || last - first >= maxNodeIds) return undefined
    for (let id = first; id <= last; id++) ids.add(id)
  }
  return ids.size <= maxNodeIds ? [...ids].sort((a, b) => a - b) : undefined
}

/** A dial map as a list, `1=kafka-1:9092,2=kafka-2:9092`, turned into an object; undefined if malformed. */
export function parseDialList(text: string): Record<string, string> | undefined {
  const entries = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => /^(\d{1,9})=(\S+)$/.exec(part))
  if (entries.some((entry) => entry === null)) return undefined
  return Object.fromEntries(entries.map((entry) => [entry?.[1] ?? '', entry?.[2] ?? '']))
}
