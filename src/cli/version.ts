/** `headgate version` */
import { type Command, readOptions } from './command.ts'
import { packageVersion } from '../lifecycle/version.ts'

export const command: Command = {
  help: `Usage: headgate version

Prints the version of Headgate and of Node.`,
  async run(args, io) {
    readOptions(args, {})
    io.out(`headgate ${packageVersion()} (node ${process.version}, ${process.platform}-${process.arch})\n`)
    return 0
  },
}
