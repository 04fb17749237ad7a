/**
 * Command line of the checker:
 *   tsx test/checker/check.ts FILES... [--rules a,b] [--without a,b] [--per-producer] [--shared] [--keep N] [--json]
 * Prints every violation with the events that prove it; exit code 0 clean, 1 violations, 2 wrong use or unreadable.
 */
import { parseArgs } from 'node:util'
import { allRules, check, rulesNamed, type Verdict } from './checker.ts'
import type { RunSettings } from './history.ts'
import { merge, readHistory } from './parse.ts'

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rules: { type: 'string' },
      without: { type: 'string' },
      'per-producer': { type: 'boolean' },
      shared: { type: 'boolean' },
      keep: { type: 'string' },
      json: { type: 'boolean' },
    },
  })
  if (positionals.length === 0) {
    console.error(
      'usage: check.ts FILES... [--rules a,b] [--without a,b] [--per-producer] [--shared] [--keep N] [--json]',
    )
    for (const rule of allRules) console.error(`  ${rule.name}: ${rule.about}`)
    return 2
  }
  const without = rulesNamed(values.without?.split(',') ?? [])
  const wanted = values.rules === undefined ? allRules : rulesNamed(values.rules.split(','))
  const settings: RunSettings = {}
  if (values['per-producer'] === true) settings.perProducer = true
  if (values.shared === true) settings.shared = true
  const history = merge(positionals.map((path) => readHistory(path)))
  const rules = wanted.filter((rule) => !without.includes(rule))
  const verdict = check(history, { rules, settings, keep: Number(values.keep ?? 5) })
  if (values.json === true) console.log(JSON.stringify(verdict))
  else print(verdict)
  return Object.values(verdict.counts).some((count) => count > 0) ? 1 : 0
}

function print(verdict: Verdict): void {
  for (const { rule, message, events } of verdict.violations) {
    console.log(`${rule}: ${message}`)
    for (const event of events) console.log(`    ${JSON.stringify(event)}`)
  }
  const events = Object.entries(verdict.events).map(([name, count]) => `${count} ${name}`)
  console.log(`events: ${events.join(', ')}`)
  for (const [rule, count] of Object.entries(verdict.counts)) {
    console.log(`${count === 0 ? 'ok  ' : 'FAIL'} ${rule}${count === 0 ? '' : `: ${count}`}`)
  }
}

try {
  process.exitCode = main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
