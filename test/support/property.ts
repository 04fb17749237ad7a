/**
 * Runs one property. A failure prints seed and path; `FC_SEED=… FC_PATH=…` replays it, `FC_RUNS=…` runs more.
 */
import fc from 'fast-check'

export async function checkAsync<T>(property: fc.IAsyncProperty<T>, runs: number): Promise<void> {
  const { FC_SEED: seed, FC_PATH: path, FC_RUNS: more } = process.env
  await fc.assert(property, {
    includeErrorInReport: true,
    numRuns: more === undefined ? runs : Number(more),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  })
}
