/** Why a port could not be bound, in one line with the setting to change. */
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

const reasons: Readonly<Record<string, [what: string, fix: string]>> = {
  EADDRINUSE: ['the port is in use', 'stop the program that uses it, or change'],
  EACCES: ['this user may not use the port (below 1024?)', 'choose another port in'],
  EADDRNOTAVAIL: ['this machine has no such address', 'correct the address in'],
  ENOTFOUND: ['the host name is not known', 'correct the address in'],
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
  const [what, fix] = reason
  const where = formatHostPort({ host: address ?? '', port })
  return new StartError(`cannot listen on ${where}: ${what} (fix: ${fix} ${settingOf(port, config)})`)
}

function settingOf(port: number, config: Config): string {
  if (port === config.admin.bind.port) return 'admin.bind'
  const index = config.listeners.findIndex((listener) => port === listener.bootstrapPort)
  if (index >= 0) return `listeners[${index}].bootstrapPort, or basePort for all ports`
  const owner = config.listeners.findIndex(({ nodeIds, basePort }) => nodeIds.includes(port - basePort))
  const node = port - (config.listeners[owner]?.basePort ?? 0)
  return owner >= 0 ? `listeners[${owner}].basePort; it is the port of node ${node}` : 'listeners'
}
