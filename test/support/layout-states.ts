/** Layouts of a topic as the state log tells them, for tests that judge by them. */
import type { Layout } from '../../src/state/topic-state.ts'

export const layout = (epoch: number, count: number, more: Partial<Layout> = {}): Layout => ({
  epoch,
  count,
  change: epoch === 0 ? 'met' : 'expand',
  order: 'key',
  gates: 'seal',
  openedAt: epoch * 10,
  openedAtMs: 0,
  starts: {},
  leaderEpochs: {},
  unsettled: epoch === 0 ? [] : [epoch - 1],
  votes: {},
  withdrawn: {},
  lastVote: -1,
  ...more,
})

export const sealed = (boundaries: Record<number, number>) => ({
  seal: { at: 99, atMs: 0, boundaries, gaveUp: [], forced: false },
})
