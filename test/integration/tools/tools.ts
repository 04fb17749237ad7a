/** Apache Kafka's own command-line tools, run in one Java machine (Tools.java). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { ChildProcess } from 'node:child_process'
import { kafkaArtifacts, MissingToolError } from '../../../scripts/kafka/artifacts.ts'
import { findJavac } from '../../../scripts/kafka/java.ts'
import { keep } from '../../../scripts/kafka/keeper.ts'
import { cached } from '../../../scripts/setup/cache.ts'
import { run } from '../../../scripts/setup/run.ts'

const source = join(import.meta.dirname, 'Tools.java')

const quick = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx256m', '-Dorg.apache.logging.log4j.level=OFF']

export interface ToolResult {
  readonly status: number
  readonly output: string
}

export class Tools {
  readonly #child: ChildProcess
  readonly #lines: Interface
  readonly #java: string
  readonly #classPath: string
  #last: Promise<unknown> = Promise.resolve()

  private constructor(child: ChildProcess, java: string, classPath: string) {
    this.#child = child
    this.#java = java
    this.#classPath = classPath
    this.#lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
  }

  /** Starts the Java machine; throws MissingToolError without a JDK. */
  static async start(): Promise<Tools> {
    const { java, classPath } = await kafkaArtifacts()
    const javac = findJavac()
    if (javac === undefined) throw new MissingToolError('a JDK is missing', 'apt-get install openjdk-17-jdk')
    const classes = await cached({
      name: 'kafka-tools',
      key: readFileSync(source, 'utf8'),
      build: async (folder) => void (await run(javac, ['-nowarn', '-cp', classPath, '-d', folder, source])),
    })
    const args = [...quick, '-cp', `${classes}:${classPath}`, 'Tools']
    return new Tools(keep(java, args, { stdio: ['pipe', 'pipe', 'inherit'] }), java, classPath)
  }

  /** Runs a tool's main class; calls wait for one another. */
  run(main: string, args: readonly string[], input = ''): Promise<ToolResult> {
    const result = this.#last.then(() => this.#next(main, args, input))
    this.#last = result.catch(() => {})
    return result
  }

  /** Runs a tool in a machine of its own: for those that print their results when the machine ends. */
  async runAlone(main: string, args: readonly string[]): Promise<ToolResult> {
    const output = await run(this.#java, [...quick, '-cp', this.#classPath, main, ...args])
    return { status: 0, output }
  }

  close(): void {
    this.#child.stdin?.end()
  }

  #next(main: string, args: readonly string[], input: string): Promise<ToolResult> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error(`the Java machine ended in ${main} ${args.join(' ')}`))
      this.#child.once('exit', ended)
      this.#lines.once('line', (line) => {
        this.#child.off('exit', ended)
        resolve(JSON.parse(line) as ToolResult)
      })
      this.#child.stdin?.write(`${JSON.stringify({ main, args, input })}\n`)
    })
  }
}
