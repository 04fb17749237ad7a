/** Message sets of magic 0 and 1, which nothing of ours writes: for tests of reading them. */
import { type Codec, codecs } from '../../../src/records/batch.ts'
import { compress } from '../../../src/records/compression/compress.ts'
import { crc32 } from '../../../src/records/crc.ts'

export interface MessageToWrite {
  readonly magic: 0 | 1
  readonly offset: number
  readonly timestamp?: number
  readonly key?: Uint8Array | null
  readonly value: Uint8Array | null
  readonly attributes?: number
}

export function buildMessage(message: MessageToWrite): Buffer {
  const parts: Buffer[] = [Buffer.from([message.magic, message.attributes ?? 0])]
  if (message.magic === 1) {
    const timestamp = Buffer.alloc(8)
    timestamp.writeBigInt64BE(BigInt(message.timestamp ?? -1))
    parts.push(timestamp)
  }
  for (const field of [message.key ?? null, message.value]) {
    const length = Buffer.alloc(4)
    length.writeInt32BE(field === null ? -1 : field.length)
    parts.push(length, Buffer.from(field ?? []))
  }
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(16)
  head.writeBigInt64BE(BigInt(message.offset), 0)
  head.writeInt32BE(body.length + 4, 8)
  head.writeUInt32BE(crc32(body), 12)
  return Buffer.concat([head, body])
}

/** A compressed set; offsets inside are as the magic wants them, the wrapper's is that of the last message. */
export function buildWrapper(
  messages: readonly MessageToWrite[],
  codec: Codec,
  timestamp = -1,
  logAppendTime = false,
): Buffer {
  const first = messages[0]!
  const last = messages[messages.length - 1]!
  const inner = messages.map((message) =>
    buildMessage({ ...message, offset: message.magic === 1 ? message.offset - first.offset : message.offset }),
  )
  return buildMessage({
    magic: first.magic,
    offset: last.offset,
    timestamp,
    value: compress(codec, Buffer.concat(inner)),
    attributes: codec | (logAppendTime && codec !== codecs.none ? 8 : 0),
  })
}
