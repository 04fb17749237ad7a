/**
 * Filtering a message of magic 0 or 1. One record: it stays as it is or goes. A wrapper that loses some of its records
 * becomes the rest as plain messages with absolute offsets; the CRC does not cover the offset, so a message is changed
 * only where the broker's clock counts: the wrapper's timestamp goes into each.
 */
import { attributeBits, attributesOf, codecOf, codecs } from './batch.ts'
import { crc32 } from './crc.ts'
import { TIMESTAMP_AT, visitMessages } from './legacy.ts'
import { type RecordView } from './record.ts'

/**
 * What remains of the complete entry [at, end): its own bytes, other bytes, or nothing.
 * @throws RecordsError when the entry is broken; `keep` was then not asked about any of its records.
 */
export function filterMessage(
  bytes: Buffer,
  at: number,
  end: number,
  maxInflatedBytes: number,
  keep: (record: RecordView) => boolean,
): Buffer | undefined {
  if (codecOf(bytes, at) === codecs.none) {
    let stays = false
    visitMessages(bytes, at, end, maxInflatedBytes, (message) => {
      stays = keep(message)
    })
    return stays ? bytes.subarray(at, end) : undefined
  }
  const appendTime = (attributesOf(bytes, at) & attributeBits.LOG_APPEND_TIME) !== 0
  const kept: Buffer[] = []
  let all = true
  visitMessages(bytes, at, end, maxInflatedBytes, (message) => {
    if (!keep(message)) {
      all = false
      return
    }
    const copy = Buffer.from(message.bytes.subarray(message.start, message.end))
    copy.writeBigInt64BE(BigInt(message.offset), 0)
    if (appendTime) stampAppendTime(copy, message.timestamp)
    kept.push(copy)
  })
  if (all) return bytes.subarray(at, end)
  return kept.length === 0 ? undefined : Buffer.concat(kept)
}

function stampAppendTime(message: Buffer, timestamp: number): void {
  message[17] = (message[17] ?? 0) | attributeBits.LOG_APPEND_TIME
  message.writeBigInt64BE(BigInt(timestamp), TIMESTAMP_AT)
  message.writeUInt32BE(crc32(message, 16), 12)
}
