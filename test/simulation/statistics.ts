/** How often each fault and state occurred: so that a run which met nothing does not pass for a proof. */

export class Statistics {
  readonly counts = new Map<string, number>()

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  add(other: ReadonlyMap<string, number>): void {
    for (const [what, times] of other) this.count(what, times)
  }

  /** One line per name, `group: name count, name count`, names being `group.name`. */
  print(): string[] {
    const groups = new Map<string, string[]>()
    for (const [what, times] of Array.from(this.counts).sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [group = '', ...name] = what.split('.')
      groups.set(group, [...(groups.get(group) ?? []), `${name.join('.')} ${times}`])
    }
    return Array.from(groups, ([group, names]) => `${group}: ${names.join(', ')}`)
  }
}
