/** `headgate groups`: which records of a consumer group wait behind a gate, and what for. */
import { AdminClient, adminHelp, adminOptions, reported } from './admin/client.ts'
import { span, table } from './admin/table.ts'
import { type Command, readOptions, UsageError } from './command.ts'

interface Gate {
  topic: string
  partition: number
  from: number
  seal?: number
  cut?: string
  parent?: number
  until?: number
  committed?: number
  since: string
}

export const command: Command = {
  help: `Usage: headgate groups list
       headgate groups gates GROUP

After a topic's partitions were changed, records of a key wait until those before them were committed. \`list\` names the
groups that have such records, \`gates\` shows each shut gate. A proxy knows the groups that read through it.

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
    const { admin, json } = readOptions(others, adminOptions)
    return reported('groups', io, async () => {
      const path = `/api/groups/${encodeURIComponent(group)}/gates`
      const gates = (await new AdminClient(admin, io).get(path)) as Gate[]
      io.out(json ? `${JSON.stringify(gates, null, 2)}\n` : gatesText(group, gates, Date.now()))
      return 0
    })
  },
}

export function gatesText(group: string, gates: readonly Gate[], nowMs: number): string {
  if (gates.length === 0) return `group ${group} has no shut gate here\n`
  const rows = gates.map((gate) => {
    const { topic, partition, from, committed, until, since } = gate
    const left = until === undefined ? undefined : Math.max(0, until - (committed ?? 0))
    const done = until === undefined ? undefined : (committed ?? 'nothing')
    return [topic, partition, from, waitsFor(gate), done, left, span(nowMs - Date.parse(since))]
  })
  return table(['TOPIC', 'PARTITION', 'FROM', 'WAITS FOR', 'COMMITTED', 'OFFSETS LEFT', 'SINCE'], rows)
}

function waitsFor({ parent, until, seal, cut }: Gate): string {
  if (parent === undefined) return `the seal of epoch ${seal}`
  return `partition ${parent} up to ${until}${cut === undefined ? '' : ` (cut ${cut})`}`
}
