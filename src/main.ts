#!/usr/bin/env node
/** The command line. Each command is loaded only when it is called, so that starting stays fast. */
import type { Command, Io } from './cli/command.ts'

const commands: Readonly<Record<string, readonly [summary: string, load: () => Promise<{ command: Command }>]>> = {
  serve: ['run the proxy', () => import('./cli/serve.ts')],
  check: ['check the configuration, and with --connect the cluster and the ports', () => import('./cli/check.ts')],
  config: ['show every setting, its value and where it came from', () => import('./cli/config.ts')],
  topics: ['show the layouts of topics, add and remove partitions', () => import('./cli/topics.ts')],
  groups: ['show which records of a group wait behind a gate', () => import('./cli/groups.ts')],
  inspect: ['show requests and replies decoded', () => import('./cli/inspect.ts')],
  healthcheck: ['ask a running proxy whether it is ready', () => import('./cli/healthcheck.ts')],
  version: ['print the version', () => import('./cli/version.ts')],
}

const io: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
}

function usage(): string {
  const lines = Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(12)} ${summary}`)
  return `Headgate, a proxy for Apache Kafka.

Usage: headgate <command> [options]

${lines.join('\n')}

headgate help <command> explains its options. The shortest start:
  headgate serve --upstream localhost:9092
`
}

async function main(args: readonly string[]): Promise<number> {
  const major = Number(process.versions.node.split('.')[0])
  if (major < 20) {
    io.err(`headgate: Node ${process.versions.node} is too old; install Node 20 or newer\n`)
    return 2
  }
  const asked = args[0] === 'help' ? args[1] : args[0]
  const help = args[0] === 'help' || args.slice(1).some((arg) => arg === '--help' || arg === '-h')
  if (asked === undefined || asked === '--help' || asked === '-h') {
    io.out(usage())
    return asked === undefined && args.length === 0 ? 2 : 0
  }
  const name = asked === '--version' || asked === '-v' ? 'version' : asked
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!entry) {
    const { nearest } = await import('./config/problems.ts')
    const near = nearest(name, Object.keys(commands))
    io.err(`headgate: there is no command ${name}${near === undefined ? '' : `; did you mean ${near}?`}\n`)
    io.err('headgate help lists the commands\n')
    return 2
  }
  const { command } = await entry[1]()
  if (help) {
    io.out(`${command.help}\n`)
    return 0
  }
  try {
    return await command.run(args.slice(1), io)
  } catch (error) {
    return report(error, name)
  }
}

/** One clear message for what the user can put right; the stack only for what is our own fault. */
function report(error: unknown, name: string): number {
  const { name: kind, message, stack } = error as Error
  if (kind === 'UsageError') io.err(`headgate ${name}: ${message}\nheadgate help ${name} lists the options\n`)
  else if (kind === 'ConfigError') io.err(`headgate: the configuration is wrong\n${message.replace(/^/gm, '  ')}\n`)
  else if (kind === 'StartError') io.err(`headgate: ${message}\n`)
  else io.err(`headgate: ${stack ?? message}\n`)
  return kind === 'UsageError' || kind === 'ConfigError' ? 2 : 1
}

// `headgate config | head`: whoever was reading has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.exitCode = await main(process.argv.slice(2))
