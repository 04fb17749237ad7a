/**
 * Finds frames in what people have: lines of `/api/tap`, a hex dump (plain, or as xxd and hexdump print it), or a file
 * of raw frames. In a hex dump a line that begins with `>` starts a request and one with `<` a response.
 */

export interface FoundFrame {
  /** undefined: not said. */
  readonly direction: 'request' | 'response' | undefined
  /** From the size field on; may be cut off. */
  readonly bytes: Buffer
  /** Length of the whole frame, where it is known from outside. */
  readonly total?: number
  /** What a tap says beside the frame. */
  readonly tapped?: TappedLine
}

/** The fields of a tapped line that are shown. */
export interface TappedLine {
  readonly at: number
  readonly connection: number
  readonly clientId: string | null
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly latencyMs: number
}

/** What was given cannot be read as frames; `offset` is where it stops making sense. */
export class FrameError extends Error {
  override readonly name = 'FrameError'
  readonly offset: number
  readonly bytes: Buffer

  constructor(message: string, bytes: Buffer, offset: number) {
    super(message)
    this.bytes = bytes
    this.offset = offset
  }
}

/** @throws FrameError where a size field cannot be one */
export function findFrames(input: Buffer): FoundFrame[] {
  const text = input.toString('latin1')
  if (/^\s*\{/.test(text))
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .flatMap(fromLine)
  if (isText(text)) return fromHex(text)
  return splitFrames(input, undefined)
}

/** A line of `/api/tap`; a line that only says how many were dropped is none. */
export function fromLine(line: string): FoundFrame[] {
  const parsed = JSON.parse(line) as TappedLine & { direction: 'request' | 'response'; frame?: string; size: number }
  if (parsed.frame === undefined) return []
  const { direction, frame, size } = parsed
  return [{ direction, bytes: Buffer.from(frame, 'base64'), total: size, tapped: parsed }]
}

function isText(text: string): boolean {
  return /^[\x09\x0a\x0d\x20-\x7e]*$/.test(text) && /[0-9a-fA-F]{2}/.test(text)
}

function fromHex(text: string): FoundFrame[] {
  const found: FoundFrame[] = []
  let direction: FoundFrame['direction']
  let bytes: Buffer[] = []
  const close = (): void => {
    if (bytes.length > 0) found.push(...splitFrames(Buffer.concat(bytes), direction))
    bytes = []
  }
  for (const line of text.split('\n')) {
    const mark = /^\s*([<>])/.exec(line)?.[1]
    if (mark !== undefined) {
      close()
      direction = mark === '>' ? 'request' : 'response'
    }
    bytes.push(hexOf(line.replace(/^\s*[<>]/, '')))
  }
  close()
  return found
}

/** The bytes of one line: without the offset in front and the characters behind that hexdump and xxd add. */
function hexOf(line: string): Buffer {
  const body = line
    .replace(/^\s*(?:0x)?[0-9a-fA-F]{4,8}(?::|\s{2,})/, '')
    .replace(/\s*\|.*\|\s*$/, '')
    .split(/ {2,}(?=[^ ]*[^0-9a-fA-F\s][^ ]*|.*[^0-9a-fA-F\s])/)[0]
  const digits = (body ?? '').replace(/0x|[\s,:]/g, '')
  const hex = /^(?:[0-9a-fA-F]{2})*/.exec(digits)?.[0] ?? ''
  return Buffer.from(hex, 'hex')
}

function splitFrames(bytes: Buffer, direction: FoundFrame['direction']): FoundFrame[] {
  const found: FoundFrame[] = []
  let at = 0
  while (at < bytes.length) {
    if (bytes.length - at < 4) throw new FrameError(`${bytes.length - at} bytes are less than a size field`, bytes, at)
    const size = bytes.readInt32BE(at)
    if (size < 4) throw new FrameError(`a frame of ${size} bytes cannot be`, bytes, at)
    const end = at + 4 + size
    if (end > bytes.length && found.length === 0 && size > 0x0fff_ffff)
      throw new FrameError(`a frame of ${size} bytes: this does not look like Kafka`, bytes, at)
    found.push({ direction, bytes: bytes.subarray(at, Math.min(end, bytes.length)), total: 4 + size })
    at = end
  }
  return found
}
