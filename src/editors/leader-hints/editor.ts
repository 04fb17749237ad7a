/**
 * Leader hints (KIP-951): Produce v10+ and Fetch v16+ answers may name the new leader's address in tagged field 0 at
 * their very end. Whole answers get the new address spliced in. Of an answer that streams, the size is already sent
 * when its end comes: the address is written if it takes exactly as many bytes, else tag 0 becomes 127, which clients
 * skip as unknown and ask Metadata instead. On the way the error codes are counted.
 */
import { apiKeys, carriesAddresses } from '../../protocol/api-table.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import { type Handler, type Interest, type Scanner, taken, type Verdict } from '../../pipeline/handler.ts'
import type { BrokerAddresses, KnownBroker } from '../addresses.ts'
import { skipProgram } from './programs.ts'
import { type SkipProgram, SkipWalker } from './skip-program.ts'

const NODE_ENDPOINTS_TAG = 0
/** A tag that no version uses: skipped by every client. */
const UNUSED_TAG = 127
/** The tagged fields at the end are a few broker addresses; longer ones are not held back but cut off by closing. */
const TAIL_BYTES_MAX = 64 * 1024

export class LeaderHintsEditor implements Handler {
  readonly name = 'leader-hints'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.Produce, side: 'response', depth: 'scan' },
    { apiKey: apiKeys.Fetch, side: 'response', depth: 'scan' },
  ]
  private readonly addresses: BrokerAddresses
  private readonly programs = new Map<number, SkipProgram>()
  /** Set by `rewrite` where a port that it names is not bound yet. */
  private binding: Promise<void> | undefined

  constructor(addresses: BrokerAddresses) {
    this.addresses = addresses
  }

  onResponse(exchange: Exchange): Verdict {
    const { response, apiKey, apiVersion } = exchange
    if (response === undefined) return undefined
    const end = response.at + response.total
    const walker = new SkipWalker(this.program(apiKey, apiVersion))
    const bodyAt = bodyStart(exchange, response)
    const tailAt = bodyAt < 0 ? end : walker.walk(response.bytes, bodyAt, end)
    this.count(exchange, walker)
    if (!carriesAddresses(apiKey, apiVersion)) {
      if (!walker.done) exchange.connection.context.meter.undecodable(apiKey, apiVersion)
      return undefined
    }
    if (!walker.done || tailAt >= end) return malformed(exchange)
    if (response.bytes[tailAt] === 0) return undefined // no tagged fields
    return this.splice(exchange, response, tailAt, end)
  }

  scanner(exchange: Exchange): Scanner {
    return new TailScanner(this, exchange, this.program(exchange.apiKey, exchange.apiVersion))
  }

  /**
   * @returns tagged fields with the addresses clients are to see (undefined: as they are), and what to wait for before
   * a client may see them
   */
  rewrite(exchange: Exchange, tail: Buffer): { tail: Buffer | undefined; binding: Promise<void> | undefined } {
    this.binding = undefined
    const reader = new Reader(tail)
    const writer = new Writer(tail.length + 64)
    const count = reader.uvarint()
    let changed = false
    writer.uvarint(count)
    for (let i = 0; i < count; i++) {
      const tag = reader.uvarint()
      const data = reader.slice(reader.uvarint())
      writer.uvarint(tag)
      const content = tag === NODE_ENDPOINTS_TAG ? this.endpoints(exchange, data) : data
      changed ||= content !== data
      writer.uvarint(content.length)
      writer.raw(content)
    }
    reader.expectEnd()
    return { tail: changed ? writer.finish() : undefined, binding: this.binding }
  }

  count(exchange: Exchange, walker: SkipWalker): void {
    for (const code of walker.errors) exchange.connection.context.meter.error(exchange.apiKey, code)
  }

  private endpoints(exchange: Exchange, data: Buffer): Buffer {
    const reader = new Reader(data)
    const writer = new Writer(data.length + 64)
    const seen: KnownBroker[] = []
    const rests: Buffer[] = []
    for (let left = reader.compactCount(11); left > 0; left--) {
      seen.push({ nodeId: reader.int32(), host: reader.compactString(), port: reader.int32() })
      const restAt = reader.at
      reader.compactNullableString() // rack
      reader.skipTags()
      rests.push(data.subarray(restAt, reader.at))
    }
    reader.expectEnd()
    this.binding = this.addresses.learn(seen)
    const kept: Buffer[] = []
    for (const [i, broker] of seen.entries()) {
      const address = this.addresses.advertised(exchange.connection, broker.nodeId)
      if (address === undefined) continue
      writer.reset()
      writer.int32(broker.nodeId)
      writer.compactString(address.host)
      writer.int32(address.port)
      writer.raw(rests[i] ?? nothing)
      kept.push(Buffer.from(writer.finish()))
    }
    writer.reset()
    writer.uvarint(kept.length + 1)
    for (const node of kept) writer.raw(node)
    return writer.finish()
  }

  private splice(exchange: Exchange, response: Frame, tailAt: number, end: number): Verdict {
    try {
      const { tail, binding } = this.rewrite(exchange, response.bytes.subarray(tailAt, end))
      if (tail === undefined) return undefined
      const frame = Buffer.concat([response.bytes.subarray(response.at, tailAt), tail])
      frame.writeInt32BE(frame.length - 4, 0)
      exchange.response = frameOf(frame)
      if (binding === undefined) return undefined
      const go = (): void => exchange.finish('forward') // an unbound port is the listener's to log; the client retries
      void binding.then(go, go)
      return taken
    } catch (error) {
      if (error instanceof ProtocolError) return malformed(exchange)
      throw error
    }
  }

  private program(apiKey: number, version: number): SkipProgram {
    const key = apiKey * 256 + version
    const known = this.programs.get(key) ?? skipProgram(apiKey, version)
    if (known === undefined) throw new Error(`no skip program for api ${apiKey}`)
    this.programs.set(key, known)
    return known
  }
}

function bodyStart({ apiKey, apiVersion }: Exchange, frame: Frame): number {
  return peekResponseBodyStart(apiKey, apiVersion, frame.bytes, frame.at + 4, frame.at + frame.total)
}

function malformed(exchange: Exchange): Verdict {
  const { apiKey, apiVersion, connection } = exchange
  connection.context.meter.undecodable(apiKey, apiVersion)
  return {
    kind: 'close',
    reason: 'malformed_response',
    detail: `an answer to api ${apiKey} v${apiVersion} cannot be read`,
  }
}

/** One answer that streams by. */
class TailScanner implements Scanner {
  private readonly editor: LeaderHintsEditor
  private readonly exchange: Exchange
  private readonly walker: SkipWalker
  private readonly hints: boolean
  private started = false
  private held = 0

  constructor(editor: LeaderHintsEditor, exchange: Exchange, program: SkipProgram) {
    this.editor = editor
    this.exchange = exchange
    this.walker = new SkipWalker(program)
    this.hints = carriesAddresses(exchange.apiKey, exchange.apiVersion)
  }

  feed(bytes: Buffer, from: number, to: number): number {
    let at = from
    if (!this.started) {
      this.started = true
      at = bodyStart(this.exchange, { bytes, at: from, total: to - from, owned: false })
      if (at < 0) at = to
    }
    if (!this.walker.done) at = this.walker.walk(bytes, at, to)
    if (!this.hints || !this.walker.done) return to
    this.held += to - at
    return this.held > TAIL_BYTES_MAX ? to : at
  }

  finish(tail: Buffer): void {
    this.editor.count(this.exchange, this.walker)
    if (!this.hints) {
      const { apiKey, apiVersion, connection } = this.exchange
      if (!this.walker.done) connection.context.meter.undecodable(apiKey, apiVersion)
      return
    }
    const verdict =
      this.walker.done && tail.length > 0 && this.held <= TAIL_BYTES_MAX ? this.patch(tail) : malformed(this.exchange)
    if (verdict?.kind === 'close') this.exchange.connection.close(verdict.reason, verdict.detail)
  }

  private patch(tail: Buffer): Verdict {
    if (tail[0] === 0) return undefined
    try {
      const { tail: rewritten, binding } = this.editor.rewrite(this.exchange, tail)
      if (rewritten === undefined) return undefined
      void binding?.catch(() => undefined)
      if (rewritten.length === tail.length && binding === undefined) rewritten.copy(tail)
      else if (!hide(tail)) return malformed(this.exchange)
      return undefined
    } catch (error) {
      if (error instanceof ProtocolError) return malformed(this.exchange)
      throw error
    }
  }
}

/**
 * Turns tag 0 into one that clients skip.
 * @returns false where it is not the first and of one byte, as brokers write it
 */
function hide(tail: Buffer): boolean {
  const reader = new Reader(tail)
  reader.uvarint()
  if (tail[reader.at] !== NODE_ENDPOINTS_TAG) return false
  tail[reader.at] = UNUSED_TAG
  return true
}

const nothing = Buffer.alloc(0)
