/** What the system says of a process's sockets and files (Linux). */
import { readdirSync, readFileSync } from 'node:fs'

const CLOSE_WAIT = '08'

/** How many sockets whose local port is one of these are in CLOSE_WAIT. */
export function closeWaits(ports: readonly number[]): number {
  const hex = new Set(ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0')))
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(1))
  return lines.filter((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/)
    return state === CLOSE_WAIT && hex.has(local.slice(-4))
  }).length
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}
