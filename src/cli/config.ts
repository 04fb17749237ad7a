/** `headgate config` */
import { loadConfig } from '../config/load.ts'
import { configRows, toYaml, variableText } from '../config/show.ts'
import { type Command, configHelp, configOptions, loadOptions, readOptions } from './command.ts'

export const command: Command = {
  help: `Usage: headgate config [options]

Shows every setting, its value and where it came from, as YAML.
${configHelp}
      --env              show the environment variable of every setting instead
      --json             the same as JSON`,
  async run(args, io) {
    const values = readOptions(args, { ...configOptions, env: { type: 'boolean' }, json: { type: 'boolean' } })
    const rows = configRows(loadConfig({ ...loadOptions(values, io), upstreamOptional: true }))
    if (values.json) io.out(`${JSON.stringify(rows, null, 2)}\n`)
    else if (values.env) io.out(rows.map(({ variable, value }) => `${variable}=${variableText(value)}\n`).join(''))
    else io.out(`${toYaml(rows)}\n`)
    return 0
  },
}
