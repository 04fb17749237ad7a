/** Says in which points our definitions differ from Kafka's. */
import type { Definition, Message, Range } from '../codegen/model.ts'
import { intersect } from '../codegen/model.ts'
import { apiByKey } from '../../src/protocol/api-table.ts'
import type { Fact } from './facts.ts'
import { kafkaFacts, kafkaRange, ourFacts, show } from './facts.ts'
import type { KafkaMessage } from './kafka.ts'

/** Responses that carry host and port of something else than a broker. */
const foreignHosts = /^StreamsGroup/

export function compareAll(definitions: readonly Definition[], messages: ReadonlyMap<string, KafkaMessage>): string[] {
  const problems: string[] = []
  const compared = new Set<string>()
  for (const definition of definitions) {
    for (const message of definition.messages) {
      const theirs = messages.get(message.name)
      compared.add(message.name)
      if (theirs === undefined) problems.push(`${message.name}: Kafka no longer has it`)
      else problems.push(...compareMessage(definition, message, theirs))
    }
  }
  for (const message of messages.values()) {
    if (compared.has(message.name) || !message.listeners?.includes('broker') || isGone(message)) continue
    problems.push(`${message.name}: new, and a client may send it`)
  }
  problems.push(...addressProblems(messages))
  return problems
}

function isGone(message: KafkaMessage): boolean {
  return message.validVersions === 'none'
}

function compareMessage(definition: Definition, message: Message, theirs: KafkaMessage): string[] {
  const says = (text: string) => `${message.name}: ${text}`
  const valid = kafkaRange(theirs.validVersions)
  const problems: string[] = []
  if (message.versions.to !== valid.to)
    problems.push(says(`versions up to ${valid.to} there, ${message.versions.to} here`))
  if (message.versions.from > valid.from) problems.push(says(`from ${valid.from} there, ${message.versions.from} here`))
  const flexible = kafkaRange(theirs.flexibleVersions).from
  if (flexible !== message.flexibleFrom) {
    problems.push(says(`flexible from ${flexible} there, ${message.flexibleFrom} here`))
  }
  if (theirs.apiKey !== undefined && theirs.apiKey !== definition.key) problems.push(says(`key ${theirs.apiKey} there`))
  const unstable = theirs.latestVersionUnstable ?? false
  if (message.side === 'request' && unstable !== (apiByKey(definition.key ?? -1)?.unstable ?? false)) {
    problems.push(says(`newest version ${unstable ? 'is not' : 'is'} final there`))
  }
  const both = intersect(message.versions, valid)
  return [...problems, ...compareFacts(ourFacts(message, both), kafkaFacts(theirs, both), both).map(says)]
}

/** Field by field, then the order of the fields in every version. */
export function compareFacts(ours: readonly Fact[], theirs: readonly Fact[], versions: Range): string[] {
  const problems: string[] = []
  const theirsByPath = new Map(theirs.map((fact) => [fact.path, fact]))
  for (const fact of ours) {
    const other = theirsByPath.get(fact.path)
    theirsByPath.delete(fact.path)
    if (other === undefined) {
      problems.push(`${fact.path}: only here`)
      continue
    }
    for (const [what, value] of Object.entries(other.says)) {
      if (fact.says[what] !== value)
        problems.push(`${fact.path}: ${what} ${value} there, ${fact.says[what] ?? ''} here`)
    }
  }
  for (const fact of theirsByPath.values()) problems.push(`${fact.path}: only there (versions ${show(fact.versions)})`)
  if (problems.length > 0) return problems
  for (let version = versions.from; version <= versions.to; version++) {
    const order = (facts: readonly Fact[]) =>
      facts
        .filter((fact) => fact.says['tag'] === 'none' && fact.versions.from <= version && fact.versions.to >= version)
        .map((fact) => fact.path)
        .join(' ')
    if (order(ours) !== order(theirs)) return [`fields in another order in version ${version}`]
  }
  return []
}

/** A response with host and port names a broker: the table must know, or the address passes a proxy unchanged. */
function addressProblems(messages: ReadonlyMap<string, KafkaMessage>): string[] {
  const problems: string[] = []
  for (const message of messages.values()) {
    if (message.type !== 'response' || isGone(message) || foreignHosts.test(message.name)) continue
    const row = apiByKey(message.apiKey ?? -1)
    if (row?.client !== true) continue
    const facts = kafkaFacts(message, kafkaRange(message.validVersions))
    const hosts = facts.filter(
      ({ path }) => path.endsWith('host') && facts.some((f) => f.path === path.replace(/host$/, 'port')),
    )
    const first = Math.min(...hosts.map((fact) => fact.versions.from))
    if (hosts.length > 0 && first < row.addressesFrom) {
      problems.push(`${message.name}: names brokers from version ${first} on, the API table says ${row.addressesFrom}`)
    }
  }
  return problems
}
