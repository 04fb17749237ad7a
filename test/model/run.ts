/** Runs one seed to its end and judges it. */
import { judgeRun, undelivered, type Finding } from './judge.ts'
import { Model, type RunOptions } from './model.ts'

export interface RunResult {
  model: Model
  /** Violations that were not counted: each is a bug. */
  failures: Finding[]
  counted: Finding[]
}

export function runSeed(options: RunOptions): RunResult {
  const model = new Model(options)
  const { scenario, world } = model
  const isAtRest = (): boolean =>
    world.now > scenario.faultsUntil &&
    world.now > 20_000 &&
    model.producers.length === scenario.producers.length &&
    model.producers.every((producer) => producer.isDone) &&
    undelivered(model).length === 0
  world.run(scenario.endMs, isAtRest)
  const findings = judgeRun(model)
  return { model, failures: findings.filter((f) => !f.isCounted), counted: findings.filter((f) => f.isCounted) }
}
