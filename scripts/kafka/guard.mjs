/**
 * A tiny process that outlives its parent by a moment: when the pipe from the parent ends, however the parent died, it
 * kills the process ids and removes the folders that the parent told it and did not take back.
 * Lines on standard input: `+pid 12`, `-pid 12`, `+dir /path`, `-dir /path`.
 */
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'

const pids = new Set()
const folders = new Set()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, value] = [line.slice(0, 4), line.slice(5)]
  if (verb === '+pid') pids.add(Number(value))
  else if (verb === '-pid') pids.delete(Number(value))
  else if (verb === '+dir') folders.add(value)
  else if (verb === '-dir') folders.delete(value)
}
for (const pid of pids) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}
for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
