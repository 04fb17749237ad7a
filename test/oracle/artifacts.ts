/** Kafka's own classes, from Maven into the cache, and the oracle compiled against them. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchJars } from '../../scripts/kafka/artifacts.ts'
import { findJava, findJavac, findMaven } from '../../scripts/kafka/java.ts'
import { cached, isCached } from '../../scripts/setup/cache.ts'
import { run } from '../../scripts/setup/run.ts'

/** The version whose definitions ours follow, and the last one that still wrote the versions which 4.0 dropped. */
export const kafkaVersions = ['4.3.1', '3.9.1'] as const

const jackson = ['com.fasterxml.jackson.core', 'jackson-databind', '2.21.2'] as const
const logging = ['org.slf4j', 'slf4j-nop', '1.7.36'] as const
const sources = ['Oracle.java', 'Worker.java'].map((name) => join(import.meta.dirname, 'java', name))

const wanted = {
  name: 'oracle',
  key: createHash('sha256')
    .update(JSON.stringify([kafkaVersions, jackson, logging]))
    .update(sources.map((file) => readFileSync(file, 'utf8')).join())
    .digest('hex'),
}

export interface OracleArtifacts {
  readonly java: string
  readonly classes: string
  /** One folder of jars per entry of {@link kafkaVersions}. */
  readonly jars: readonly string[]
}

/** What is missing to run the oracle here, with the line that installs it; undefined when nothing is. */
export function missingTool(): string | undefined {
  if (findJava() === undefined || findJavac() === undefined) return 'no JDK: apt-get install openjdk-17-jdk-headless'
  if (!isCached(wanted) && findMaven() === undefined) return 'no Maven: apt-get install maven'
  return undefined
}

/** Fetches and compiles once; a second call needs no network. */
export async function oracleArtifacts(say: (line: string) => void): Promise<OracleArtifacts> {
  const java = findJava()
  const javac = findJavac()
  if (java === undefined || javac === undefined) throw new Error(missingTool())
  const folder = await cached({
    ...wanted,
    build: async (target) => {
      say('fetching the Kafka classes for the oracle, once (about 40 MB)')
      const [current, previous] = kafkaVersions
      const parts = ['kafka-clients', 'kafka-group-coordinator', 'kafka-transaction-coordinator']
      const group = 'org.apache.kafka'
      const newest = parts.map((name) => [group, name, current] as const)
      await fetchJars([...newest, jackson, logging], join(target, current))
      await fetchJars([[group, 'kafka-clients', previous], jackson, logging], join(target, previous))
      mkdirSync(join(target, 'classes'))
      await run(javac, ['-d', join(target, 'classes'), '-cp', join(target, current, '*'), ...sources])
    },
  })
  return {
    java,
    classes: join(folder, 'classes'),
    jars: kafkaVersions.map((version) => join(folder, version)),
  }
}
