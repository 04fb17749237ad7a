/** Kafka's own message definitions: JSON with comments inside the artifacts of a release. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchJars } from '../kafka/artifacts.ts'
import { cached } from '../setup/cache.ts'
import { readZip } from './zip.ts'

export interface KafkaField {
  readonly name: string
  readonly type: string
  readonly versions?: string
  readonly taggedVersions?: string
  readonly tag?: number | string
  readonly nullableVersions?: string
  /** Kafka's generator takes a JSON null for no default at all; the string 'null' is one. */
  readonly default?: string | number | boolean | null
  readonly ignorable?: boolean
  readonly entityType?: string
  readonly fields?: readonly KafkaField[]
}

export interface KafkaMessage {
  readonly name: string
  readonly type: string
  readonly apiKey?: number
  readonly validVersions: string
  readonly flexibleVersions?: string
  readonly listeners?: readonly string[]
  readonly latestVersionUnstable?: boolean
  readonly fields?: readonly KafkaField[]
  readonly commonStructs?: readonly { readonly name: string; readonly fields: readonly KafkaField[] }[]
}

const parts = ['kafka-clients', 'kafka-group-coordinator', 'kafka-transaction-coordinator']

/** Every message definition of a Kafka version, by name; fetched once into the cache. */
export async function kafkaMessages(version: string, say: (line: string) => void): Promise<Map<string, KafkaMessage>> {
  const folder = await cached({
    name: `definitions-${version}`,
    key: `${version} ${parts.join(' ')}`,
    build: (target) => {
      say(`fetching Apache Kafka ${version} with Maven, once`)
      return fetchJars(
        parts.map((name) => ['org.apache.kafka', name, version] as const),
        target,
      )
    },
  })
  const messages = new Map<string, KafkaMessage>()
  for (const jar of readdirSync(folder).filter((name) => parts.some((part) => name === `${part}-${version}.jar`))) {
    const files = readZip(readFileSync(join(folder, jar)), (name) => /^common\/message\/\w+\.json$/.test(name))
    for (const text of files.values()) {
      const message = JSON.parse(withoutComments(text.toString('utf8'))) as KafkaMessage
      messages.set(message.name, message)
    }
  }
  return messages
}

/** Removes `//` comments, but not inside strings. */
export function withoutComments(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\/\/[^\n]*/g, (part) => (part.startsWith('"') ? part : ''))
}
