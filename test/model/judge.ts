/**
 * Judges a run: by the history checker's rules, by the order of records that one producer wrote to different
 * partitions, and by whether everything arrived. Violations whose records were counted are allowed, others are not.
 */
import { check, rulesNamed } from '../checker/checker.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { Model } from './model.ts'

export interface Finding {
  rule: string
  text: string
  isCounted: boolean
}

export function judgeRun(model: Model): Finding[] {
  const history = [...layoutEvents(model), ...model.world.history]
  const hasCuts = topicStates(model).some((topic) =>
    topic.layouts.some((layout) => layout.gates === 'cuts' && layout.change !== 'met'),
  )
  const findings: Finding[] = []
  const judge = (names: string[], perProducer: boolean): void => {
    const verdict = check(history, { rules: rulesNamed(names), settings: { perProducer }, keep: 1000 })
    for (const { rule, message, events } of verdict.violations) {
      findings.push({
        rule,
        text: `${message}: ${events.map((event) => JSON.stringify(event)).join(' ')}`,
        isCounted: isCounted(model, events, perProducer),
      })
    }
  }
  judge(['key-order'], true)
  judge(['one-member-per-key', 'child-after-parents'], hasCuts)
  findings.push(...crossOrder(model), ...undelivered(model))
  findings.push(...model.world.needless.map((text) => ({ rule: 'needlessly-counted', text, isCounted: false })))
  return model.world.hasLostLogs ? findings.map((found) => ({ ...found, isCounted: found.rule !== 'stuck' })) : findings
}

function topicStates(model: Model) {
  return model.proxies.flatMap((proxy) => (proxy.view === undefined ? [] : [proxy.view.topic]))
}

/** Sealed expansions with fresh partitions, for the rule on children. */
function layoutEvents(model: Model): HistoryEvent[] {
  const topic = topicStates(model).sort((a, b) => b.layouts.length - a.layouts.length)[0]
  return (topic?.layouts ?? []).flatMap((layout, index): HistoryEvent[] => {
    const from = topic?.layouts[index - 1]?.count
    if (
      from === undefined ||
      layout.gates !== 'seal' ||
      layout.seal === undefined ||
      model.world.mutation !== undefined
    )
      return []
    return [
      {
        event: 'layout',
        at: 0,
        topic: 'topic',
        from,
        to: layout.count,
        boundaries: layout.seal.boundaries,
        starts: layout.starts,
      },
    ]
  })
}

function isCounted(model: Model, events: readonly HistoryEvent[], perProducer: boolean): boolean {
  return events.some((event) => {
    if (event.event !== 'delivered' || event.key === null) return false
    return isExcused(model, event.producer, event.key) || (!perProducer && isKeyExcused(model, event.key))
  })
}

function isExcused(model: Model, producer: string, key: string): boolean {
  const keys = model.world.excused.get(producer)
  return keys !== undefined && (keys.has(key) || keys.has('*'))
}

function isKeyExcused(model: Model, key: string): boolean {
  return [...model.world.excused.values()].some((keys) => keys.has(key) || keys.has('*'))
}

interface Given {
  sequence: number
  partition: number
}

/**
 * Records of one (producer, key) in different partitions: first deliveries ascend by sequence. In one partition the
 * log's order is the client's own doing, as it is where a client that pipelines without idempotence sent both to the
 * same place first and then took one of them back.
 */
function crossOrder(model: Model): Finding[] {
  const findings: Finding[] = []
  const seen = new Set<string>()
  const given = new Map<string, Given[]>()
  const fates = new Map(model.producers.map((producer) => [producer.name, producer]))
  for (const event of model.world.history) {
    if (event.event !== 'delivered') continue
    const { group, producer, sequence, key, partition } = event
    const name = `${group}/${producer}/${sequence}`
    if (seen.has(name)) continue
    seen.add(name)
    const before = given.get(`${group}/${producer}/${key}`) ?? []
    const source = fates.get(producer)
    const fate = source?.fates.get(sequence)
    const overtaker = before.find((other) => {
      if (other.sequence < sequence || other.partition === partition) return false
      const isOwn = fate?.wasRetried === true && source?.plan.family.idempotent === false
      return !(isOwn && source.fates.get(other.sequence)?.firstPartition === fate.firstPartition)
    })
    if (overtaker !== undefined) {
      const text = `${group}: ${producer}.${sequence} key ${key} at ${partition} given after .${overtaker.sequence} at ${overtaker.partition} (t=${event.at})`
      findings.push({ rule: 'cross-order', text, isCounted: isExcused(model, producer, key ?? '') })
    }
    given.set(`${group}/${producer}/${key}`, [...before, { sequence, partition }])
  }
  return findings
}

/** At rest every group has been given everything that is in the logs. */
export function undelivered(model: Model): Finding[] {
  return model.groups.flatMap((group) =>
    model.broker.partitions.flatMap((log, partition) => {
      const missing = log.filter(
        (entry) =>
          entry.record !== undefined &&
          entry.offset >= model.broker.logStart(partition) &&
          !group.delivered.has(`${partition}/${entry.offset}`),
      )
      if (missing.length === 0) return []
      return [
        {
          rule: 'stuck',
          text: `${group.name} was not given ${missing.length} records of ${partition} from ${missing[0]?.offset}`,
          isCounted: false,
        },
      ]
    }),
  )
}
