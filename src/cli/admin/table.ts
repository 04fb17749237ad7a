/** Text for people: columns, and times as they are said. */

/** Rows under a head, each column as wide as its longest text; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly (string | number | undefined)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => (cell === undefined ? '–' : String(cell))))
  const width = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const isNumber = head.map((_, column) => rows.every((row) => typeof (row[column] ?? 0) === 'number'))
  return cells
    .map((row) =>
      row
        .map((cell, column) => (isNumber[column] ? cell.padStart(width[column] ?? 0) : cell.padEnd(width[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('')
}

/** `3 s`, `4 min`, `2 h` between two moments. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}

/** `, for 3 s, 117 s more at most` of a wait. */
export function waiting(since: string | undefined, atMost: string | undefined, nowMs: number): string {
  const so = since === undefined ? '' : `, for ${span(nowMs - Date.parse(since))}`
  return `${so}${atMost === undefined ? '' : `, ${span(Date.parse(atMost) - nowMs)} more at most`}`
}

/** `0: 12, 1: 9` */
export function offsets(ends: Readonly<Record<string, number>>): string {
  return Object.entries(ends)
    .map(([partition, end]) => `${partition}: ${end}`)
    .join(', ')
}

/** `3-5, 8` of ascending numbers. */
export function ranges(numbers: readonly number[]): string {
  const parts: [number, number][] = []
  for (const number of numbers) {
    const last = parts.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else parts.push([number, number])
  }
  return parts.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ')
}
