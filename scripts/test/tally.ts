/** Counts what a suite's output says: node:test's summary, or a line `N passed, N failed[, N skipped]`. */

export interface Tally {
  passed: number
  failed: number
  skipped: number
}

/**
 * The counts in a suite's output. A suite that prints none is one check, passed or failed by its exit code; one that
 * prints no failure and fails all the same counts one.
 */
export function tally(output: string, exitCode: number | null): Tally {
  const total: Tally = { passed: 0, failed: 0, skipped: 0 }
  let counted = false
  const add = (name: keyof Tally, count: string | undefined) => {
    counted = true
    total[name] += Number(count ?? 0)
  }
  for (const line of output.split('\n')) {
    const node = /^(?:#|ℹ) (pass|fail|cancelled|skipped) (\d+)$/.exec(line)
    if (node?.[1] === 'pass') add('passed', node[2])
    else if (node?.[1] === 'skipped') add('skipped', node[2])
    else if (node !== null) add('failed', node[2])
    const plain = /^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(line)
    if (plain === null) continue
    add('passed', plain[1])
    add('failed', plain[2])
    add('skipped', plain[3])
  }
  if (exitCode === 0 && !counted) total.passed = 1
  if (exitCode !== 0 && total.failed === 0) total.failed = 1
  return total
}

/** The part of a suite's output that tells why it failed. */
export function excerpt(output: string, lines = 60): string {
  const all = output.trimEnd().split('\n')
  const start = all.findIndex((line) => /failing tests:|^not ok|✖/.test(line))
  return (start === -1 ? all.slice(-lines) : all.slice(start, start + 2 * lines)).join('\n')
}
