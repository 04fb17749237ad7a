/** One JVM with Kafka's serialisers, asked over its stdin and stdout; answers come in the order of the questions. */
import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { OracleArtifacts } from './artifacts.ts'

export interface JavaMessage {
  readonly bytes: Buffer
  /** As Kafka's own JSON converter shows the message. */
  readonly json: unknown
}

/** Java refused: the text is its exception. */
export class JavaRefusal extends Error {}

export class Jvm {
  private readonly child: ChildProcessByStdio<Writable, Readable, null>
  private readonly waiting: { resolve: (answer: Buffer) => void; reject: (error: Error) => void }[] = []
  private pending: Buffer = Buffer.alloc(0)

  constructor({ java, classes, jars }: OracleArtifacts) {
    const args = ['-Xshare:auto', '-Xmx512m', '-XX:+UseSerialGC', '-cp', classes, 'Oracle', classes, ...jars]
    this.child = spawn(java, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.child.stdout.on('data', (chunk: Buffer) => this.take(chunk))
    this.child.on('close', (code) => {
      for (const { reject } of this.waiting.splice(0)) reject(new Error(`the oracle's JVM ended with code ${code}`))
    })
  }

  stop(): void {
    this.child.stdin.end()
  }

  /** The APIs of a broker's listener: `key name version requestHeader responseHeader` per line. */
  async list(kafka: number): Promise<string> {
    return (await this.ask(kafka, Buffer.from('L'))).toString('utf8')
  }

  /** The bytes and the JSON of a message of defaults. */
  async defaults(kafka: number, type: string, version: number): Promise<JavaMessage> {
    return split(await this.ask(kafka, question('D', type, [version], Buffer.alloc(0))))
  }

  /** Reads `bytes` and writes them again. */
  async reread(kafka: number, type: string, version: number, bytes: Buffer): Promise<JavaMessage> {
    return split(await this.ask(kafka, question('R', type, [version], bytes)))
  }

  /** Reads `bytes` in one version and writes them in another. */
  async convert(kafka: number, type: string, from: number, to: number, bytes: Buffer): Promise<JavaMessage> {
    return split(await this.ask(kafka, question('C', type, [from, to], bytes)))
  }

  private ask(kafka: number, body: Buffer): Promise<Buffer> {
    const head = Buffer.alloc(5)
    head.writeInt32BE(body.length + 1, 0)
    head.writeInt8(kafka, 4)
    this.child.stdin.write(Buffer.concat([head, body]))
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }))
  }

  private take(chunk: Buffer): void {
    this.pending = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    while (this.pending.length >= 4) {
      const end = 4 + this.pending.readInt32BE(0)
      if (this.pending.length < end) return
      const answer = this.pending.subarray(4, end)
      this.pending = this.pending.subarray(end)
      const asked = this.waiting.shift()
      if (answer[0] === 0) asked?.resolve(answer.subarray(1))
      else asked?.reject(new JavaRefusal(answer.subarray(1).toString('utf8')))
    }
  }
}

function question(kind: string, type: string, versions: readonly number[], body: Buffer): Buffer {
  const head = Buffer.alloc(3 + type.length + 2 * versions.length)
  head.write(kind, 0, 'latin1')
  head.writeInt16BE(type.length, 1)
  head.write(type, 3, 'latin1')
  versions.forEach((version, index) => head.writeInt16BE(version, 3 + type.length + 2 * index))
  return Buffer.concat([head, body])
}

function split(answer: Buffer): JavaMessage {
  const length = answer.readInt32BE(0)
  return { bytes: answer.subarray(4, 4 + length), json: JSON.parse(answer.toString('utf8', 4 + length)) as unknown }
}
