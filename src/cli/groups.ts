/** `headgate groups`: which records of a consumer group wait behind a gate, and what for. */
import { AdminClient, adminHelp, adminOptions, reported } from './admin/client.ts'
import { allGates, firstGates, type GateText, type UnassignedText, unassignedLines } from './admin/gate-text.ts'
import { type Command, readOptions, UsageError } from './command.ts'

export const command: Command = {
  help: `Usage: headgate groups list
       headgate groups gates GROUP [--all]

After a topic's partitions were changed, records of a key wait until those before them were committed. \`list\` names the
groups that have such records, \`gates\` shows for each partition that is shut what its next records wait for, and which
partitions nobody is assigned yet. A proxy knows the groups that read through it, and what is assigned where their leader does.

      --all          every gate, those behind the first of a partition too
${adminHelp}

Exit code 0, 1 if no proxy answers, 2 for wrong options.`,
  async run(args, io) {
    const [action = '', ...rest] = args
    if (action === 'list') {
      const { admin, json } = readOptions(rest, adminOptions)
      return reported('groups', io, async () => {
        const groups = (await new AdminClient(admin, io).get('/api/groups')) as string[]
        if (json) io.out(`${JSON.stringify(groups, null, 2)}\n`)
        else io.out(groups.length === 0 ? 'no group waits\n' : groups.map((group) => `${group}\n`).join(''))
        return 0
      })
    }
    if (action !== 'gates') throw new UsageError(`say list or gates${action === '' ? '' : `, not ${action}`}`)
    const [group, ...others] = rest
    if (group === undefined || group.startsWith('--'))
      throw new UsageError('name the group: headgate groups gates GROUP')
    const { admin, json, all } = readOptions(others, { ...adminOptions, all: { type: 'boolean' } })
    return reported('groups', io, async () => {
      const path = `/api/groups/${encodeURIComponent(group)}/gates`
      const rows = (await new AdminClient(admin, io).get(path)) as (GateText | UnassignedText)[]
      io.out(json ? `${JSON.stringify(rows, null, 2)}\n` : gatesText(group, rows, all === true, Date.now()))
      return 0
    })
  },
}

export function gatesText(
  group: string,
  rows: readonly (GateText | UnassignedText)[],
  isAll: boolean,
  nowMs: number,
): string {
  if (rows.length === 0) return `group ${group} has no shut gate here\n`
  const unassigned = rows.filter((row) => 'unassigned' in row)
  const gates = rows.flatMap((row) => ('unassigned' in row ? [] : [row]))
  const shut = gates.length === 0 ? '' : (isAll ? allGates : firstGates)(gates, nowMs, unassigned)
  return `${shut}${unassignedLines(unassigned, nowMs)}`
}
