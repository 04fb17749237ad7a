/** `headgate check` */
import { formatHostPort } from '../config/address.ts'
import { loadConfig } from '../config/load.ts'
import { formatProblem } from '../config/problems.ts'
import { groupRuleLines, topicRuleLines } from '../config/rules.ts'
import type { Config, ListenerConfig } from '../config/schema.ts'
import { type Command, configHelp, configOptions, type Io, loadOptions, readOptions } from './command.ts'

export const command: Command = {
  help: `Usage: headgate check [options]

Checks the configuration and prints where clients will connect, and which rules hold for topics and groups. Exit code 0 if all is well, 2 if the configuration is
wrong, 1 if --connect found a port that is taken, no broker that answers, or one that cannot be reached.
${configHelp}
      --connect          also try the ports, and the brokers: those of upstream.bootstrap and
                         those that the cluster names`,
  async run(args, io) {
    const values = readOptions(args, { ...configOptions, connect: { type: 'boolean' } })
    const { config, warnings } = loadConfig(loadOptions(values, io))
    io.out('the configuration is valid\n\n')
    for (const warning of warnings) io.out(`warning: ${formatProblem(warning)}\n`)
    if (warnings.length > 0) io.out('\n')
    for (const listener of config.listeners) io.out(plan(listener))
    io.out(rules('topics with layouts', topicRuleLines(config)))
    io.out(rules('consumer groups', groupRuleLines(config)))
    return values.connect ? await tryOut(config, io) : 0
  },
}

function rules(what: string, lines: readonly string[]): string {
  if (lines.length === 0) return ''
  return `${what} (the first rule that matches holds)\n${lines.map((line) => `  ${line}\n`).join('')}`
}

function plan(listener: ListenerConfig): string {
  const { name, mode, bind, advertise, bootstrapPort, basePort, advertisePort, nodeIds, dial } = listener
  const first = nodeIds[0] ?? 0
  const rows = [
    ['bootstrap', `listen ${formatHostPort({ host: bind, port: bootstrapPort })}`],
    [
      `node n, for example ${first}`,
      `listen ${formatHostPort({ host: bind, port: basePort + first })}, advertised ${
        mode === 'loopback' ? '127.x.y.z of the client' : advertise
      }:${advertisePort + first}`,
    ],
    ...[...dial].map(([id, address]) => [`node ${id}`, `is dialled at ${formatHostPort(address)}`]),
  ]
  return `listener ${name} (${mode})\n${rows.map(([what = '', where]) => `  ${what.padEnd(24)} ${where}\n`).join('')}`
}

async function tryOut(config: Config, io: Io): Promise<number> {
  const { probePorts, probeUpstream } = await import('./probe.ts')
  const results = [...(await probePorts(config)), ...(await probeUpstream(config))]
  if (results.some(({ ok, upstream }) => ok && upstream)) {
    const { probeBrokers } = await import('./probe-brokers.ts')
    results.push(...(await probeBrokers(config)))
  }
  io.out('\n')
  for (const { ok, text } of results) io.out(`${ok ? 'ok    ' : 'FAILED'} ${text}\n`)
  const upstream = results.filter((result) => result.upstream)
  return results.some(({ ok, upstream: isUpstream }) => !ok && !isUpstream) || upstream.every(({ ok }) => !ok) ? 1 : 0
}
