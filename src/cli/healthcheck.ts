/** `headgate healthcheck`: for containers, whose images have neither a shell nor curl. */
import { get } from 'node:http'
import { formatHostPort, isWildcard } from '../config/address.ts'
import { loadConfig } from '../config/load.ts'
import { parseDuration } from '../config/units.ts'
import { type Command, configHelp, configOptions, loadOptions, readOptions, UsageError } from './command.ts'

export const command: Command = {
  help: `Usage: headgate healthcheck [options]

Asks the running proxy whether it is ready; exit code 0 if so, 1 if not.
${configHelp}
      --admin URL        where to ask, for example http://127.0.0.1:9190 (or HEADGATE_ADMIN; default: admin.bind
                         of the configuration)
      --live             ask only whether the process answers (/livez), not whether it is ready (/readyz)
      --timeout TIME     give up after this long (default 3s)`,
  async run(args, io) {
    const values = readOptions(args, {
      ...configOptions,
      admin: { type: 'string' },
      live: { type: 'boolean' },
      timeout: { type: 'string' },
    })
    const timeoutMs = parseDuration(values.timeout ?? '3s')
    if (timeoutMs === undefined) throw new UsageError(`--timeout is not a duration: ${values.timeout}`)
    const base =
      values.admin ??
      (io.env.HEADGATE_ADMIN || undefined) ??
      configuredAdmin(loadConfig({ ...loadOptions(values, io), upstreamOptional: true }).config)
    if (!URL.canParse(base)) throw new UsageError(`--admin is not a URL: ${base}`)
    const url = new URL(values.live ? '/livez' : '/readyz', base)
    try {
      const { status, text } = await ask(url, timeoutMs)
      const line = `${url.href} answers ${status} ${text}\n`
      if (status === 200) io.out(line)
      else io.err(line)
      return status === 200 ? 0 : 1
    } catch (error) {
      io.err(`${url.href}: ${(error as Error).message}\n`)
      return 1
    }
  },
}

function configuredAdmin({ admin }: ReturnType<typeof loadConfig>['config']): string {
  const { host, port } = admin.bind
  const reachable = !isWildcard(host) ? host : host === '::' ? '::1' : '127.0.0.1'
  return `http://${formatHostPort({ host: reachable, port })}`
}

function ask(url: URL, timeoutMs: number): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk.slice(0, 4096 - text.length)))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: text.trim() }))
      response.on('error', reject)
    })
    request.on('error', (error) => {
      reject(error.name === 'AbortError' ? new Error(`no answer within ${timeoutMs} ms`) : error)
    })
  })
}
