/** Medians, ratios, the table for people and the verdict on the targets that Headgate has set itself. Pure. */
import type { Measures } from './measure.ts'

/** For each target the measures of its rounds, in order; targets that failed have no rounds. */
export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly rounds: Readonly<Record<string, readonly Measures[]>>
}

export interface Rule {
  readonly scenario: string
  readonly metric: string
  readonly bound: 'at least' | 'at most'
  /** limit = factor × the same metric of `of` + plus, compared within each round; without `of` just plus. */
  readonly of?: string
  readonly factor?: number
  readonly plus?: number
  /** Whose numbers are judged (default: Headgate without features). */
  readonly target?: string
}

export interface Judgement {
  readonly rule: string
  readonly value: number
  readonly limit: number
  readonly met: boolean
}

const bulkRules = (scenario: string): Rule[] => [
  { scenario, metric: 'mbPerSecond', bound: 'at least', of: 'prototype', factor: 0.9 },
  { scenario, metric: 'cpuSecondsPerGb', bound: 'at most', of: 'prototype', factor: 1.25 },
]
const smallRules = (scenario: string): Rule[] => [
  { scenario, metric: 'requestsPerSecond', bound: 'at least', of: 'prototype', factor: 0.9 },
  { scenario, metric: 'cpuUsPerRequest', bound: 'at most', of: 'prototype', factor: 1.35 },
]

const filtering = { scenario: 'filter', target: 'ranges' } as const
/** Twice what a partition may bring, and 1 MB. */
const filterMemoryMb = (2 * 2 ** 20) / 1e6 + 1
const filterRules: Rule[] = [
  { ...filtering, metric: 'noneMbPerCpuSecond', bound: 'at least', plus: 500 },
  { ...filtering, metric: 'lz4MbPerCpuSecond', bound: 'at least', plus: 150 },
  { ...filtering, metric: 'zstdMbPerCpuSecond', bound: 'at least', plus: 150, target: 'ranges-node22' },
  { ...filtering, metric: 'plainCpuSecondsPerGb', bound: 'at most', of: 'headgate', factor: 1.05 },
  { ...filtering, metric: 'plainP99Ms', bound: 'at most', of: 'headgate', factor: 1, plus: 0.5 },
  { ...filtering, metric: 'addedMbPerClient', bound: 'at most', plus: filterMemoryMb },
]

/** A topic at rest beside the same without a rule. */
const layoutRules = ['produce', 'consume'].flatMap((part): Rule[] => {
  const atRest = { scenario: 'layouts', target: 'layouts', bound: 'at most', of: 'headgate' } as const
  return [
    { ...atRest, metric: `${part}CpuSecondsPerGb`, factor: 1.05 },
    { ...atRest, metric: `${part}P99Ms`, plus: 0.5 },
  ]
})

/** What Headgate must reach. */
export const rules: readonly Rule[] = [
  ...[
    'opaque-fetch',
    'opaque-fetch-hints',
    'opaque-produce',
    'consume',
    'produce',
    'java-consume',
    'java-produce',
  ].flatMap(bulkRules),
  ...['small', 'ping-pong'].flatMap(smallRules),
  { scenario: 'pipelined', metric: 'cpuUsPerRequest', bound: 'at most', plus: 8 },
  { scenario: 'latency', metric: 'p50Ms', bound: 'at most', of: 'direct', factor: 1, plus: 0.15 },
  { scenario: 'latency', metric: 'p99Ms', bound: 'at most', of: 'direct', factor: 1, plus: 1 },
  { scenario: 'connections', metric: 'cpuUsPerConnection', bound: 'at most', of: 'prototype', factor: 1, plus: 200 },
  { scenario: 'metadata', metric: 'p50Ms', bound: 'at most', of: 'direct', factor: 1, plus: 2 },
  { scenario: 'idle', metric: 'startMs', bound: 'at most', plus: 400 },
  { scenario: 'idle', metric: 'idleMb', bound: 'at most', plus: 80 },
  { scenario: 'idle-connections', metric: 'addedMb', bound: 'at most', plus: 40 },
  { scenario: 'large-frame', metric: 'addedMb', bound: 'at most', plus: 16 },
  { scenario: 'slow-readers', metric: 'peakMb', bound: 'at most', plus: 200 },
  ...filterRules,
  ...layoutRules,
]

/** The middle value; the mean of the two middle ones of an even count. NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const high = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? NaN)) / 2
}

function valuesOf(result: ScenarioResult, target: string, metric: string): number[] {
  return (result.rounds[target] ?? []).flatMap((measures) => measures[metric] ?? [])
}

/**
 * How `target` compares with `base`: the median of the ratios within each round, so that a machine that becomes slower
 * during the run does not count. NaN if either lacks the metric.
 */
export function ratio(result: ScenarioResult, target: string, base: string, metric: string): number {
  return median(pairs(result, target, base, metric).flatMap(([own, other]) => (other === 0 ? [] : [own / other])))
}

/** What two targets measured in the same rounds. */
function pairs(result: ScenarioResult, target: string, base: string, metric: string): [own: number, other: number][] {
  return (result.rounds[target] ?? []).flatMap((measures, round): [number, number][] => {
    const [own, other] = [measures[metric], result.rounds[base]?.[round]?.[metric]]
    return own === undefined || other === undefined ? [] : [[own, other]]
  })
}

/** Judges one target (a rule may name another one) by the rules of the scenarios that were run; a rule whose numbers are missing is left out. */
export function judge(results: readonly ScenarioResult[], target: string): Judgement[] {
  return rules.flatMap((rule) => {
    const result = results.find((one) => one.name === rule.scenario)
    if (result === undefined) return []
    const judgement = judgeRule(rule, result, rule.target ?? target)
    return Number.isNaN(judgement.value) || Number.isNaN(judgement.limit) ? [] : [judgement]
  })
}

function judgeRule(rule: Rule, result: ScenarioResult, target: string): Judgement {
  const { scenario, metric, bound, of, factor = 1, plus = 0 } = rule
  const judged = (value: number, limit: number, unit: string): Judgement => ({
    rule: `${scenario} ${metric} ${bound} ${show(limit)} ${unit}`.trim(),
    value,
    limit,
    met: bound === 'at least' ? value >= limit : value <= limit,
  })
  if (of === undefined) return judged(median(valuesOf(result, target, metric)), plus, '')
  if (plus === 0) return judged(ratio(result, target, of, metric), factor, `× ${of}`)
  const above = pairs(result, target, of, metric).map(([own, other]) => own - factor * other)
  return judged(median(above), plus, `above ${factor === 1 ? '' : `${factor} × `}${of}`)
}

/** A number with about three digits that say something. */
export function show(value: number): string {
  if (Number.isNaN(value)) return '–'
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** One scenario as a Markdown table: the median of each metric, the range below five rounds or more, the ratio to `base`. */
export function table(result: ScenarioResult, base: string): string {
  const targets = Object.keys(result.rounds).filter((t) => result.rounds[t]?.some((m) => Object.keys(m).length > 0))
  const metrics = [...new Set(targets.flatMap((t) => (result.rounds[t] ?? []).flatMap((m) => Object.keys(m))))]
  const compared = new Set(
    metrics.filter((metric) => targets.some((t) => !Number.isNaN(ratio(result, t, base, metric)))),
  )
  const header = ['', ...metrics.flatMap((metric) => [metric, ...(compared.has(metric) ? [`× ${base}`] : [])])]
  const rows = targets.map((target) => [
    target,
    ...metrics.flatMap((metric) => {
      const values = valuesOf(result, target, metric)
      const range = values.length > 1 ? ` (${show(Math.min(...values))}…${show(Math.max(...values))})` : ''
      const ratios = compared.has(metric) ? [show(ratio(result, target, base, metric))] : []
      return [show(median(values)) + range, ...ratios]
    }),
  ])
  return [`### ${result.name}: ${result.title}`, '', ...markdown([header, ...rows])].join('\n')
}

/** The verdict as a Markdown table. */
export function verdict(judgements: readonly Judgement[], target: string): string {
  const rows = judgements.map(({ rule, value, met }) => [rule, show(value), met ? 'met' : 'NOT met'])
  return [`### ${target} against its targets`, '', ...markdown([['target', 'measured', ''], ...rows])].join('\n')
}

function markdown(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const line = (row: readonly string[]) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  const [header = [], ...body] = rows
  return [line(header), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body.map(line)]
}
