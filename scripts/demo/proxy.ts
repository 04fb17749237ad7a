/** The real binary in front of the demo's Kafka, with rules of the demo. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, removeFolder, temporaryFolder } from '../kafka/keeper.ts'
import { freePorts } from '../kafka/ports.ts'

export interface StartedProxy {
  /** `host:port` for clients. */
  readonly bootstrap: string
  /** URL of its admin port. */
  readonly admin: string
  /** All that it has logged. */
  log(): string
  stop(): Promise<void>
}

/**
 * Starts Headgate and waits until it is ready. Rejects with its log after half a minute.
 * @param name names its folder
 * @param rules lines of the configuration, at top level
 */
export async function startHeadgate(
  name: string,
  main: string,
  upstream: string,
  rules: readonly string[],
): Promise<StartedProxy> {
  const folder = temporaryFolder(name)
  const [bootstrapPort = 0, basePort = 0] = await freePorts(12)
  const [adminPort = 0] = await freePorts(1)
  const admin = `http://127.0.0.1:${adminPort}`
  const config = join(folder, 'headgate.yaml')
  const log = join(folder, 'headgate.log')
  const lines = [
    `upstream: {bootstrap: '${upstream}'}`,
    'listeners:',
    `  - {name: demo, mode: ports, bind: 127.0.0.1, advertise: 127.0.0.1, basePort: ${basePort}, bootstrapPort: ${bootstrapPort}}`,
    `admin: {bind: '127.0.0.1:${adminPort}'}`,
    ...rules,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const redirect = ['-c', 'exec "$0" "$1" serve --config "$2" >"$3" 2>&1', process.execPath, main, config, log]
  const child = keep('sh', redirect, { stdio: 'ignore' })
  const exited = new Promise((resolve) => child.on('exit', resolve))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await exited
    removeFolder(folder)
  }
  for (let attempt = 0; (await fetch(`${admin}/readyz`).catch(() => undefined))?.ok !== true; attempt++) {
    if (attempt === 600) {
      const text = readFileSync(log, 'utf8')
      await stop()
      throw new Error(`Headgate did not become ready:\n${text}`)
    }
    await delay(50)
  }
  return { bootstrap: `127.0.0.1:${bootstrapPort}`, admin, log: () => readFileSync(log, 'utf8'), stop }
}
