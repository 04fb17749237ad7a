/** Small handlers for tests. */
import type { Exchange } from '../../src/pipeline/exchange.ts'
import { frameOf } from '../../src/pipeline/frame.ts'
import type { Answer, Handler, Interest, Verdict } from '../../src/pipeline/handler.ts'
import { responseFrame } from './frames.ts'

/** A handler for one side of some APIs, made of a function. */
export function handler(
  side: 'request' | 'response',
  apiKeys: readonly number[],
  run: (exchange: Exchange) => Verdict,
  name = 'test',
): Handler {
  const interests = apiKeys.map((apiKey): Interest => ({ apiKey, side, depth: 'full' }))
  return side === 'request' ? { name, interests, onRequest: run } : { name, interests, onResponse: run }
}

export function answerOf(text: string): Answer {
  return { kind: 'answer', frame: frameOf(responseFrame(0, Buffer.from(text))) }
}

/** The body of an answer as text: what follows size and correlation id. */
export function bodyText(frame: Buffer | undefined): string {
  return frame === undefined ? '(none)' : frame.toString('latin1', 8)
}
