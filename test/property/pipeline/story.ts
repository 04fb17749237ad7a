/**
 * A scripted conversation: what a client sends, what the handlers do with each request and each answer, and how the
 * broker answers. Everything a request is to go through is written into its own body, so that no side needs to know
 * more than what it reads.
 */
import fc from 'fast-check'
import type { Exchange } from '../../../src/pipeline/exchange.ts'
import { frameOf } from '../../../src/pipeline/frame.ts'
import { type Handler, type Interest, taken, type Verdict } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { Prng } from '../../support/prng.ts'
import type { Peer, Rig } from '../../support/rig.ts'

/** What the request's handler does. `hold`, `laned`: see `Exchange.hold` and `Exchange.queue`. */
export const requestActions = ['pass', 'answer', 'later', 'answer-later', 'hold', 'laned', 'ask-first'] as const
export const responseActions = ['pass', 'later', 'replace', 'replace-later'] as const

export interface Step {
  /** The handlers are asked only where `opened`. */
  readonly opened: boolean
  readonly acks0: boolean
  readonly request: (typeof requestActions)[number]
  readonly response: (typeof responseActions)[number]
  readonly lane: number
  readonly handlerMs: number
  readonly brokerMs: number
  readonly requestBytes: number
  readonly responseBytes: number
  /** The client waits this long before it sends. */
  readonly gapMs: number
}

const sizes = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 2, arbitrary: fc.integer({ min: 300, max: 80_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 200_000, max: 700_000 }) },
)
const delays = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 }))

export const steps: fc.Arbitrary<Step> = fc.record({
  opened: fc.boolean(),
  acks0: fc.nat(9).map((n) => n === 0),
  request: fc.constantFrom(...requestActions),
  response: fc.constantFrom(...responseActions),
  lane: fc.nat(2),
  handlerMs: delays,
  brokerMs: delays,
  requestBytes: sizes,
  responseBytes: sizes,
  gapMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, delays),
})

/** Produce v0 is opaque, v1 opened; CreateTopics v0 and v1 likewise. */
const PRODUCE = 0
const CREATE_TOPICS = 19
/** Requests of our own: never sent by the client. */
const OWN = 42
const HEAD_BYTES = 30

export function clientFrame(step: Step, tag: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeInt16BE(step.acks0 ? 0 : 1, 0)
  head.writeInt32BE(tag, 2)
  head.writeInt8(requestActions.indexOf(step.request), 6)
  head.writeInt8(responseActions.indexOf(step.response), 7)
  head.writeInt8(step.lane, 8)
  head.writeInt32BE(step.handlerMs, 9)
  head.writeInt32BE(step.brokerMs, 13)
  head.writeInt32BE(step.responseBytes, 17)
  head.writeInt8(step.acks0 ? 1 : 0, 21)
  return requestFrame({
    apiKey: step.acks0 ? PRODUCE : CREATE_TOPICS,
    apiVersion: step.opened ? 1 : 0,
    correlationId: correlationOf(tag),
    clientId: 'c',
    body: Buffer.concat([head, filler(tag, step.requestBytes)]),
  })
}

/** Scattered, so that a number of the proxy's own is not mistaken for one of the client's. */
export function correlationOf(tag: number): number {
  return Math.imul(tag + 1, 0x9e3779b1) | 0
}

function filler(seed: number, length: number): Buffer {
  return Buffer.alloc(length, new Prng(seed).bytes(61))
}

interface Parsed {
  readonly tag: number
  readonly request: (typeof requestActions)[number]
  readonly response: (typeof responseActions)[number]
  readonly lane: number
  readonly handlerMs: number
  readonly brokerMs: number
  readonly responseBytes: number
  readonly silent: boolean
}

const BODY_AT = 15

function parse(bytes: Buffer, at: number): Parsed {
  const body = at + BODY_AT
  return {
    tag: bytes.readInt32BE(body + 2),
    request: requestActions[bytes.readInt8(body + 6)] ?? 'pass',
    response: responseActions[bytes.readInt8(body + 7)] ?? 'pass',
    lane: bytes.readInt8(body + 8),
    handlerMs: bytes.readInt32BE(body + 9),
    brokerMs: bytes.readInt32BE(body + 13),
    responseBytes: bytes.readInt32BE(body + 17),
    silent: bytes.readInt8(body + 21) === 1,
  }
}

function answerBody(kind: string, tag: number, length: number): Buffer {
  return Buffer.concat([Buffer.from(`${kind}:${tag}:`), filler(tag + 7, length)])
}

/** The reply that the client must get; undefined for acks=0. */
export function expectedReply(step: Step, tag: number): Buffer | undefined {
  if (step.acks0) return undefined
  const local = step.opened && (step.request === 'answer' || step.request === 'answer-later')
  const replaced = step.opened && !local && (step.response === 'replace' || step.response === 'replace-later')
  const kind = local ? 'local' : replaced ? 'replaced' : 'broker'
  return responseFrame(correlationOf(tag), answerBody(kind, tag, local || replaced ? 20 : step.responseBytes))
}

/** Whether the broker must see the request. acks=0 is never answered locally here. */
export function goesUpstream(step: Step): boolean {
  return !(step.opened && (step.request === 'answer' || step.request === 'answer-later')) || step.acks0
}

/** A broker that answers one request at a time, each after its own delay. */
export class ScriptedBroker {
  readonly tags: number[] = []
  readonly bodies = new Map<number, Buffer>()
  readonly ids = new Set<number>()
  ownRequests = 0
  private readonly queue: Buffer[] = []
  private busy = false
  private readonly rig: () => Rig

  constructor(rig: () => Rig) {
    this.rig = rig
  }

  attach(peer: Peer): void {
    peer.onFrame = (frame) => {
      this.queue.push(frame)
      this.next(peer)
    }
  }

  private next(peer: Peer): void {
    if (this.busy) return
    const frame = this.queue.shift()
    if (frame === undefined) return
    const id = frame.readInt32BE(8)
    if (this.ids.has(id)) throw new Error(`correlation id ${id} came twice`)
    this.ids.add(id)
    if (frame.readInt16BE(4) === OWN) {
      this.ownRequests++
      this.answer(peer, responseFrame(id, frame.subarray(frame.length - 4)), 3)
      return
    }
    const parsed = parse(frame, 0)
    this.tags.push(parsed.tag)
    this.bodies.set(parsed.tag, frame.subarray(BODY_AT))
    if (parsed.silent) this.next(peer)
    else this.answer(peer, responseFrame(id, answerBody('broker', parsed.tag, parsed.responseBytes)), parsed.brokerMs)
  }

  private answer(peer: Peer, frame: Buffer, delayMs: number): void {
    this.busy = true
    this.rig().runtime.timer(delayMs, () => {
      peer.send(frame)
      this.busy = false
      this.next(peer)
    })
  }
}

/** Does with each message what its body says. */
export class ScriptedHandler implements Handler {
  readonly name = 'scripted'
  readonly interests: readonly Interest[] = [PRODUCE, CREATE_TOPICS].flatMap((apiKey): Interest[] => [
    { apiKey, side: 'request', versions: [1, 1], depth: 'full' },
    { apiKey, side: 'response', versions: [1, 1], depth: 'full' },
  ])
  readonly problems: string[] = []
  asked = 0
  answered = 0

  onRequest(exchange: Exchange): Verdict {
    const { request, connection } = exchange
    if (request === undefined) throw new Error('a request handler was called without a request')
    const step = parse(request.bytes, request.at)
    const { runtime } = connection.context
    exchange.setState(this, step)
    const pass = (): void => exchange.finish('forward')
    const local = { kind: 'answer' as const, frame: frameOf(responseFrame(0, answerBody('local', step.tag, 20))) }
    if (step.silent && step.request.startsWith('answer')) return undefined
    switch (step.request) {
      case 'pass':
        return undefined
      case 'answer':
        return local
      case 'later':
        runtime.timer(step.handlerMs, pass)
        return taken
      case 'answer-later':
        runtime.timer(step.handlerMs, () => exchange.finish(local))
        return taken
      case 'ask-first':
        this.asked++
        void connection.ask(OWN, 0, int32(step.tag)).then((reply) => {
          this.answered++
          if (reply.frame.bytes.readInt32BE(reply.bodyAt) !== step.tag) this.problems.push(`own answer of ${step.tag}`)
          exchange.finish('forward')
        })
        return taken
      case 'hold':
      case 'laned': {
        const lanes = [`lane:${step.lane}`]
        if (exchange.queue(lanes)) return taken
        if (step.request === 'laned') return undefined
        exchange.hold(lanes, step.handlerMs, 'forward')
        return taken
      }
      default:
        throw new Error('unknown action')
    }
  }

  onResponse(exchange: Exchange): Verdict {
    const step = exchange.state<Parsed>(this)
    if (exchange.response === undefined) throw new Error('a response handler was called without a response')
    if (step === undefined) throw new Error('the request was never seen')
    const { runtime } = exchange.connection.context
    const replaced = { kind: 'answer' as const, frame: frameOf(responseFrame(0, answerBody('replaced', step.tag, 20))) }
    switch (step.response) {
      case 'pass':
        return undefined
      case 'later':
        runtime.timer(step.handlerMs, () => exchange.finish('forward'))
        return taken
      case 'replace':
        return replaced
      case 'replace-later':
        runtime.timer(step.handlerMs, () => exchange.finish(replaced))
        return taken
      default:
        throw new Error('unknown action')
    }
  }
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
