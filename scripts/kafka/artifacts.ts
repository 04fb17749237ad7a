/**
 * Apache Kafka from Maven: the server, its tools and a formatted storage folder as template for new nodes, fetched
 * once into the cache. Invariant: a complete cache needs neither Maven nor a network.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, isCached } from '../setup/cache.ts'
import { run } from '../setup/run.ts'
import { findJava, findMaven } from './java.ts'
import { nodeProperties } from './properties.ts'

/** The Apache Kafka version that the harness and the demo run. */
export const kafkaVersion = '4.3.1'

const loggingVersion = '2.25.4'
const artifacts = [
  ['org.apache.kafka', 'kafka_2.13', kafkaVersion],
  ['org.apache.kafka', 'kafka-tools', kafkaVersion],
  ['org.apache.logging.log4j', 'log4j-slf4j-impl', loggingVersion],
] as const
const wanted = { name: `kafka-${kafkaVersion}`, key: `${artifacts.flat().join(' ')} layout 1` }

export interface KafkaArtifacts {
  /** The java command. */
  readonly java: string
  /** Class path with server, tools and clients. */
  readonly classPath: string
  /** A storage folder as `kafka-storage format` leaves it. */
  readonly template: string
}

export class MissingToolError extends Error {
  readonly code = 'HG_MISSING_TOOL'
  /** The line that installs what is missing. */
  readonly install: string
  constructor(message: string, install: string) {
    super(`${message}: ${install}`)
    this.install = install
  }
}

/** Whether Apache Kafka could be started here: Java, and Maven or a filled cache. */
export function canRunKafka(): boolean {
  return findJava() !== undefined && (isCached(wanted) || findMaven() !== undefined)
}

/** Apache Kafka's artifacts, fetched first if need be; throws MissingToolError without Java 17 or Maven. */
export async function kafkaArtifacts(say: (line: string) => void = () => {}): Promise<KafkaArtifacts> {
  const java = findJava()
  if (java === undefined) throw new MissingToolError('Java 17 or newer is missing', 'apt-get install openjdk-17-jdk')
  const folder = await cached({
    ...wanted,
    build: async (target) => {
      findMavenOrThrow()
      say(`fetching Apache Kafka ${kafkaVersion} with Maven, once (60 MB, about 20 s)`)
      await fetchJars(artifacts, join(target, 'libs'))
      await formatTemplate(java, target)
    },
  })
  return { java, classPath: join(folder, 'libs', '*'), template: join(folder, 'template') }
}

/** Throws MissingToolError without Maven. */
export function findMavenOrThrow(): void {
  if (findMaven() === undefined) throw new MissingToolError('Maven is missing', 'apt-get install maven')
}

/** Copies the jars of the given artifacts (group, name, version) and of what they need into `folder`. */
export async function fetchJars(list: readonly (readonly [string, string, string])[], folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const dependencies = list.map(
    ([group, name, version]) =>
      `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`,
  )
  writeFileSync(
    join(folder, 'pom.xml'),
    `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>headgate</groupId><artifactId>artifacts</artifactId><version>1</version>
<dependencies>${dependencies.join('')}</dependencies></project>\n`,
  )
  const args = ['-q', '-B', '-ntp', 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`]
  await run('mvn', args, { cwd: folder })
}

/** One run of Kafka's own storage tool; nodes copy what it wrote and change the ids. */
async function formatTemplate(java: string, target: string): Promise<void> {
  const template = join(target, 'template')
  const voters = [{ id: 1, port: 9092, controllerPort: 9093 }]
  const properties = nodeProperties({ id: 1, nodes: voters, dataFolder: template, overrides: {} })
  const file = join(target, 'format.properties')
  writeFileSync(file, properties)
  const tool = ['kafka.tools.StorageTool', 'format', '--cluster-id', 'AAAAAAAAAAAAAAAAAAAAAQ', '--config', file]
  await run(java, ['-cp', join(target, 'libs', '*'), ...tool])
}
