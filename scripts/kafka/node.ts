/** One Kafka node: a Java process that can be stopped, killed, paused and restarted on the same ports and data. */
import type { ChildProcess } from 'node:child_process'
import { cpSync, existsSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { KafkaArtifacts } from './artifacts.ts'
import { keep } from './keeper.ts'
import { type ExtraListener, type NodeAddress, nodeProperties } from './properties.ts'

const stopWithinMs = 20_000
/** Quick start matters more to tests than peak speed; the benchmark passes its own. */
export const quickJvm = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', '-Xms96m', '-Xmx512m']

export interface NodeOptions {
  readonly address: NodeAddress
  readonly nodes: readonly NodeAddress[]
  readonly clusterId: string
  /** Folder of this node: data, configuration and log. */
  readonly folder: string
  readonly jvm: readonly string[]
  readonly listeners: readonly ExtraListener[]
  readonly overrides: Readonly<Record<string, string>>
}

export class KafkaNode {
  readonly id: number
  readonly port: number
  /** What the node logged (Kafka's server log). */
  readonly log: string
  readonly #artifacts: KafkaArtifacts
  readonly #options: NodeOptions
  readonly #dataFolder: string
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(artifacts: KafkaArtifacts, options: NodeOptions) {
    this.id = options.address.id
    this.port = options.address.port
    this.log = join(options.folder, 'server.log')
    this.#artifacts = artifacts
    this.#options = options
    this.#dataFolder = join(options.folder, 'data')
  }

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The last lines of the node's log, for error messages. */
  tail(lines = 30): string {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : ''
  }

  /** Starts the process (formats its storage first); readiness is the cluster's matter. */
  start(): void {
    if (this.#child !== undefined) throw new Error(`node ${this.id} runs already`)
    const { folder, jvm, nodes, listeners, overrides } = this.#options
    if (!existsSync(this.#dataFolder)) this.#format()
    const properties = join(folder, 'server.properties')
    const settings = { id: this.id, nodes, dataFolder: this.#dataFolder, listeners, overrides }
    writeFileSync(properties, nodeProperties(settings))
    const logging = join(folder, 'log4j2.properties')
    writeFileSync(logging, loggingProperties)
    const output = openSync(this.log, 'a')
    const args = [...jvm, `-Dlog4j2.configurationFile=${logging}`, '-cp', this.#artifacts.classPath]
    const child = keep(this.#artifacts.java, [...args, 'kafka.Kafka', properties], {
      stdio: ['ignore', output, output],
    })
    closeSync(output)
    this.#child = child
    this.#exited = new Promise((resolve) => {
      child.on('error', () => resolve())
      child.on('exit', () => {
        this.#child = undefined
        resolve()
      })
    })
  }

  /** Controlled shutdown; killed if it takes longer than 20 s. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    const patience = setTimeout(() => child.kill('SIGKILL'), stopWithinMs)
    await this.#exited
    clearTimeout(patience)
  }

  /** SIGKILL: what a lost machine looks like. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#exited
  }

  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  #format(): void {
    cpSync(this.#artifacts.template, this.#dataFolder, { recursive: true })
    rmSync(join(this.#dataFolder, '.lock'), { force: true })
    const meta = {
      version: '1',
      'cluster.id': this.#options.clusterId,
      'node.id': String(this.id),
      'directory.id': kafkaUuid(),
    }
    const lines = Object.entries(meta).map(([key, value]) => `${key}=${value}\n`)
    writeFileSync(join(this.#dataFolder, 'meta.properties'), lines.join(''))
  }
}

/** A random id as Kafka writes them: base64url, never with a leading dash. */
export function kafkaUuid(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url')
    if (!id.startsWith('-')) return id
  }
}

const loggingProperties = `status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
`
