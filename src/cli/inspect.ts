/** `headgate inspect`: decoded requests and replies, from a file or from a running proxy. */
import { readFileSync } from 'node:fs'
import { apis } from '../protocol/api-table.ts'
import { type Command, type Io, UsageError, readOptions } from './command.ts'
import { type Asked, FrameDecoder } from './inspect/decode.ts'
import { findFrames, type FoundFrame, FrameError, fromLine } from './inspect/frames.ts'
import { bytesAround, formatFrame, type Style } from './inspect/print.ts'

const options = {
  file: { type: 'string', short: 'f' },
  admin: { type: 'string' },
  client: { type: 'string' },
  topic: { type: 'string' },
  api: { type: 'string' },
  as: { type: 'string' },
  json: { type: 'boolean' },
  full: { type: 'boolean' },
  records: { type: 'boolean' },
  limit: { type: 'string' },
} as const

type Values = ReturnType<typeof readOptions<typeof options>>

export const command: Command = {
  help: `Usage: headgate inspect --file FILE [options]     a hex dump, raw frames, or lines of /api/tap (- for standard input)
       headgate inspect [--admin URL] [options]  what passes through a running proxy (it must have admin.inspect: true)

Prints requests (→) and replies (←), one line each.

      --admin URL     admin port of the proxy (default http://127.0.0.1:9190)
      --client ID     only this client.id
      --topic NAME    only messages that name this topic
      --api LIST      only these APIs, for example Fetch,Produce
      --as API:V      what replies in the file answer, where their request is not in it, for example Fetch:12
      --records       keys and values too, not only counts and sizes
      --full          do not cut long lines
      --json          JSON lines
      --limit N       stop after N lines

Exit code 0, 1 if something could not be read, 2 for wrong options.`,
  async run(args, io) {
    const values = readOptions(args, options)
    const printer = new Printer(values, io)
    if (values.file !== undefined) return inspectFile(values.file, printer, io)
    return inspectProxy(values, printer, io)
  },
}

class Printer {
  /** Something could not be read. */
  failed = false
  private readonly decoder: FrameDecoder
  private readonly style: Style
  private readonly values: Values
  private readonly io: Io
  private readonly names: ReadonlySet<string> | undefined
  private left: number

  constructor(values: Values, io: Io) {
    this.values = values
    this.io = io
    this.style = { json: values.json === true, full: values.full === true }
    this.names = values.api === undefined ? undefined : new Set(values.api.split(',').map(apiNamed))
    this.decoder = new FrameDecoder(values.as === undefined ? undefined : parseAs(values.as), values.records === true)
    this.left = values.limit === undefined ? Infinity : Number(values.limit)
    if (!(this.left > 0)) throw new UsageError(`--limit wants a number above 0, not ${values.limit}`)
  }

  get done(): boolean {
    return this.left <= 0
  }

  print(frame: FoundFrame): void {
    if (this.done) return
    const decoded = this.decoder.decode(frame)
    if (decoded.problem !== undefined) this.failed = true
    const { client, topic } = this.values
    if (client !== undefined && decoded.clientId !== client) return
    if (topic !== undefined && !decoded.topics.includes(topic)) return
    if (this.names !== undefined && !this.names.has(decoded.api)) return
    this.left--
    this.io.out(`${formatFrame(frame, decoded, this.style)}\n`)
  }
}

function inspectFile(file: string, printer: Printer, io: Io): number {
  try {
    for (const frame of findFrames(readFileSync(file === '-' ? 0 : file))) printer.print(frame)
    return printer.failed ? 1 : 0
  } catch (error) {
    if (error instanceof FrameError) {
      io.err(`headgate inspect: at offset ${error.offset}, field size: ${error.message}\n`)
      io.err(`${bytesAround(error.bytes, error.offset)}\n`)
      return 1
    }
    if (error instanceof Error && 'syscall' in error) {
      io.err(`headgate inspect: ${error.message}\n`)
      return 1
    }
    throw error
  }
}

async function inspectProxy(values: Values, printer: Printer, io: Io): Promise<number> {
  const admin = values.admin ?? 'http://127.0.0.1:9190'
  const url = new URL('/api/tap', admin)
  if (values.client !== undefined) url.searchParams.set('client', values.client)
  if (values.api !== undefined) url.searchParams.set('api', values.api.split(',').map(apiNamed).join(','))
  const answer = await fetch(url).catch((error: Error) => error)
  if (answer instanceof Error) {
    io.err(`headgate inspect: no proxy answers at ${admin}: ${causeOf(answer)}; name its admin port with --admin\n`)
    return 1
  }
  if (!answer.ok || answer.body === null) {
    const { error } = (await answer.json()) as { error?: { message: string; fix?: string } }
    io.err(`headgate inspect: ${error?.message ?? answer.statusText} (${error?.fix ?? answer.status})\n`)
    return 1
  }
  let rest = ''
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) showLine(line, printer, io)
    if (printer.done) break
  }
  return printer.failed ? 1 : 0
}

function showLine(line: string, printer: Printer, io: Io): void {
  const dropped = /^\{"dropped":(\d+)\}$/.exec(line)?.[1]
  if (dropped !== undefined) io.err(`headgate inspect: ${dropped} frames were left out: this end did not keep up\n`)
  else for (const frame of fromLine(line)) printer.print(frame)
}

function causeOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message
}

/** The API's name as the table has it. Throws `UsageError` for one that it does not have. */
function apiNamed(name: string): string {
  const api = apis.find((row) => row.name.toLowerCase() === name.trim().toLowerCase())
  if (api === undefined) throw new UsageError(`there is no API ${name}`)
  return api.name
}

function parseAs(text: string): Asked {
  const [name = '', version = ''] = text.split(':')
  const api = apis.find((row) => row.name === apiNamed(name))
  if (api === undefined || !/^\d+$/.test(version)) throw new UsageError(`--as wants API:VERSION, not ${text}`)
  return { apiKey: api.key, apiVersion: Number(version) }
}
