/** Why ports could not be bound, in one line each with the setting to change. */
import { formatHostPort } from '../config/address.ts'
import type { Config } from '../config/schema.ts'

/** Start-up failed for a reason the user can put right: the message is all there is to say. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

interface SystemError extends Error {
  code?: string
  address?: string
  port?: number
}

interface Reason {
  readonly what: string
  readonly fix: string
  /** It is the address that is wrong, not the port. */
  readonly isAddress?: boolean
}

const reasons: Readonly<Record<string, Reason>> = {
  EADDRINUSE: { what: 'the port is in use', fix: 'stop the program that uses it, or change' },
  EACCES: { what: 'this user may not use the port (below 1024?)', fix: 'choose another port in' },
  EADDRNOTAVAIL: { what: 'this machine has no such address', fix: 'correct the address in', isAddress: true },
  ENOTFOUND: { what: 'the host name is not known', fix: 'correct the address in', isAddress: true },
}

/** `error` as a `StartError` if it came from binding a configured address (listeners say it themselves); else the error itself. */
export function describeListenError(error: unknown, config: Config): Error {
  const { code = '', name, address, port, message } = error as SystemError
  if (name === 'PortError') return new StartError(message)
  const reason = reasons[code]
  if (!reason || port === undefined) {
    return code === 'ENOTFOUND'
      ? new StartError(`cannot listen: ${message} (fix: correct the bind address)`)
      : (error as Error)
  }
  const where = formatHostPort({ host: address ?? '', port })
  const setting = reason.isAddress === true ? addressSetting(port, config) : portSetting(port, config)
  return new StartError(`cannot listen on ${where}: ${reason.what} (fix: ${reason.fix} ${setting})`)
}

/** What keeps the ports of one address from being bound, in one line where there are several. */
export function describeListenErrors(errors: readonly Error[], config: Config): string[] {
  const alike = new Map<string, SystemError[]>()
  for (const error of errors as SystemError[]) {
    const key =
      error.port === undefined ? error.message : `${error.code}/${error.address}/${ownerOf(error.port, config)}`
    alike.set(key, [...(alike.get(key) ?? []), error])
  }
  return Array.from(alike.values(), (group) => describeGroup(group, config))
}

function describeGroup(group: readonly SystemError[], config: Config): string {
  const [first] = group
  const reason = reasons[first?.code ?? '']
  if (group.length === 1 || reason === undefined) return describeListenError(first, config).message
  const ports = group.map(({ port = 0 }) => port)
  const owner = ownerOf(ports[0] ?? 0, config)
  const setting =
    reason.isAddress === true ? addressSetting(ports[0] ?? 0, config) : `${owner}.basePort and bootstrapPort`
  const what = reason.what.replace('the port is', 'they are').replace('the port', 'them')
  const fix = reason.fix.replace('uses it', 'uses them').replace('another port', 'other ports')
  const host = formatHostPort({ host: first?.address ?? '', port: ports[0] ?? 0 }).replace(/:\d+$/, '')
  return `cannot listen on ${group.length} ports of ${host} (${inRuns(ports)}): ${what} (fix: ${fix} ${setting})`
}

/** `19092-19095, 19100` */
function inRuns(ports: readonly number[]): string {
  const runs: [first: number, last: number][] = []
  for (const port of [...ports].sort((a, b) => a - b)) {
    const last = runs.at(-1)
    if (last?.[1] === port - 1) last[1] = port
    else runs.push([port, port])
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ')
}

/** `admin` or `listeners[i]`. */
function ownerOf(port: number, config: Config): string {
  if (port === config.admin.bind.port) return 'admin'
  const index = config.listeners.findIndex(
    ({ bootstrapPort, nodeIds, basePort }) => port === bootstrapPort || nodeIds.includes(port - basePort),
  )
  return index < 0 ? 'listeners' : `listeners[${index}]`
}

function addressSetting(port: number, config: Config): string {
  return `${ownerOf(port, config)}.bind`
}

function portSetting(port: number, config: Config): string {
  const owner = ownerOf(port, config)
  if (owner === 'admin') return 'admin.bind'
  const listener = config.listeners.find(({ bootstrapPort }) => port === bootstrapPort)
  if (listener !== undefined) return `${owner}.bootstrapPort, or basePort for all ports`
  const { basePort } = config.listeners.find(({ nodeIds, basePort: base }) => nodeIds.includes(port - base)) ?? {}
  return basePort === undefined ? owner : `${owner}.basePort; it is the port of node ${port - basePort}`
}
