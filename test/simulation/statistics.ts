/** How often each fault and state occurred: so that a run which met nothing does not pass for a proof. */

/** What some hundred changes of layout must have met. */
const ofLayouts: readonly string[] = [
  ...['proposal', 'preparing', 'ready', 'open', 'vote', 'withdrawal', 'sealed', 'aborted', 'expel'].map(
    (kind) => `state.${kind}`,
  ),
  ...['cut', 'cut-read', 'announced', 'topic-snapshot'].map((kind) => `state.${kind}`),
  ...[
    'leader-change',
    'broker-down',
    'proxy-crash',
    'proxy-pause',
    'compact-state',
    'producer-cut-off',
    'state-cut-off',
  ].map((kind) => `faults in a change.${kind}`),
  'faults.own-requests-lost',
  'layouts.expand by seal',
  'layouts.expand by cuts',
  'layouts.shrink by cuts',
  'layouts.external by seal',
  'log.another proxy coordinates the fleet now',
  'log.this proxy was expelled from the fleet',
  'history.transaction',
]

export class Statistics {
  readonly counts = new Map<string, number>()

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  add(other: ReadonlyMap<string, number>): void {
    for (const [what, times] of other) this.count(what, times)
  }

  /** What changes of layout should have met and did not. */
  missingOfLayouts(): string[] {
    return ofLayouts.filter((what) => !this.counts.has(what))
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
