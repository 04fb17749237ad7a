/** `headgate serve` */
import { loadConfig } from '../config/load.ts'
import { formatProblem } from '../config/problems.ts'
import { type Command, configHelp, configOptions, loadOptions, readOptions } from './command.ts'

export const command: Command = {
  help: `Usage: headgate serve [options]

Runs the proxy until SIGTERM or Ctrl-C.
${configHelp}

Exit code 0 after a signal, 1 if it could not start, 2 if the configuration is wrong.`,
  async run(args, io) {
    const { config, warnings } = loadConfig(loadOptions(readOptions(args, configOptions), io))
    const { serve } = await import('../lifecycle/server.ts')
    // Not left to Node: a handle that was forgotten somewhere must not keep a stopped proxy alive.
    process.exit(await serve(config, warnings.map(formatProblem)))
  },
}
