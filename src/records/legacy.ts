/**
 * Messages of magic 0 and 1, which logs older than Kafka 0.11 and clients below Produce v3 still hold. A message is one
 * record, or a wrapper: its value is a compressed set of messages. In magic 1 the offsets inside are relative, the
 * wrapper's being that of the last one; in magic 0 they are absolute (KIP-31).
 */
import { LENGTH_END, attributeBits, attributesOf, codecOf, codecs, entryEnd, magicOf, readLong } from './batch.ts'
import { corrupt } from './errors.ts'
import { inflate } from './inflate.ts'
import { RecordView } from './record.ts'

/** Position of the timestamp; key and value follow it in magic 1, and the attributes in magic 0. */
export const TIMESTAMP_AT = 18

/** One record of a message set: the view, and where its message lies in `view.bytes`. */
export class MessageView extends RecordView {
  start = 0
  end = 0
  /** Milliseconds since 1970, -1 in magic 0. */
  timestamp = -1
}

/**
 * Calls `visit` with each record of the complete magic 0 or 1 entry [at, end); the view is reused.
 * @throws RecordsError when lengths, nesting or the codec are not right, before `visit` was called for the entry.
 */
export function visitMessages(
  bytes: Buffer,
  at: number,
  end: number,
  maxInflatedBytes: number,
  visit: (message: MessageView) => void,
): void {
  const view = new MessageView()
  if (codecOf(bytes, at) === codecs.none) {
    showMessage(view, bytes, at, end, at)
    visit(view)
    return
  }
  const wrapper = new MessageView()
  showMessage(wrapper, bytes, at, end, at)
  if (wrapper.valueStart < 0) throw corrupt(at, 'compressed message without a value')
  const inner = inflate(bytes, wrapper.valueStart, wrapper.valueEnd, at, maxInflatedBytes)
  const { ends, lastInner } = checkInner(inner, magicOf(bytes, at), at)
  const shift = magicOf(bytes, at) === 1 ? wrapper.offset - lastInner : 0
  const appendTime = (attributesOf(bytes, at) & attributeBits.LOG_APPEND_TIME) !== 0
  let start = 0
  for (const next of ends) {
    showMessage(view, inner, start, next, at)
    view.offset += shift
    if (appendTime) view.timestamp = wrapper.timestamp
    visit(view)
    start = next
  }
}

/** Walks the whole inner set once, so that nothing is shown of one that is broken further on. */
function checkInner(inner: Buffer, magic: number, at: number): { ends: number[]; lastInner: number } {
  const ends: number[] = []
  const probe = new MessageView()
  let start = 0
  while (start < inner.length) {
    const end = entryEnd(inner, start)
    if (end < 0) throw corrupt(at, 'compressed message set ends inside a message')
    if (magicOf(inner, start) !== magic) throw corrupt(at, `magic ${magicOf(inner, start)} inside magic ${magic}`)
    if (codecOf(inner, start) !== codecs.none) throw corrupt(at, 'compressed message inside a compressed one')
    showMessage(probe, inner, start, end, at)
    ends.push(end)
    start = end
  }
  return { ends, lastInner: probe.offset }
}

/** Fills the view from the message [start, end) of `bytes`. */
function showMessage(view: MessageView, bytes: Buffer, start: number, end: number, batchAt: number): void {
  const hasTimestamp = magicOf(bytes, start) === 1
  if (end - start < LENGTH_END + (hasTimestamp ? 22 : 14)) throw corrupt(batchAt, 'message too short')
  view.bytes = bytes
  view.start = start
  view.end = end
  view.offset = readLong(bytes, start, batchAt)
  view.timestamp = hasTimestamp ? readLong(bytes, start + TIMESTAMP_AT, batchAt) : -1
  const keyLengthAt = start + (hasTimestamp ? TIMESTAMP_AT + 8 : TIMESTAMP_AT)
  const keyLength = bytes.readInt32BE(keyLengthAt)
  const valueLengthAt = keyLengthAt + 4 + Math.max(keyLength, 0)
  if (keyLength < -1 || valueLengthAt + 4 > end) throw corrupt(batchAt, `key of ${keyLength} bytes`)
  view.keyStart = keyLength < 0 ? -1 : keyLengthAt + 4
  view.keyEnd = keyLength < 0 ? -1 : valueLengthAt
  const valueLength = bytes.readInt32BE(valueLengthAt)
  if (valueLength < -1 || valueLengthAt + 4 + Math.max(valueLength, 0) !== end) {
    throw corrupt(batchAt, `value of ${valueLength} bytes`)
  }
  view.valueStart = valueLength < 0 ? -1 : valueLengthAt + 4
  view.valueEnd = valueLength < 0 ? -1 : end
}
