/** The fixed-layout headers, described once more and read by `binary-parser`: an independent check of our own reading. */
import { Parser } from 'binary-parser'

/** Size, api key, version, correlation id and the length of the client id. */
export const requestHead = new Parser()
  .endianess('big')
  .int32('size')
  .int16('apiKey')
  .int16('apiVersion')
  .int32('correlationId')
  .int16('clientIdLength')

export const responseHead = new Parser().endianess('big').int32('size').int32('correlationId')

/** The 61 bytes in front of the records of a v2 batch. */
export const batchHead = new Parser()
  .endianess('big')
  .int64('baseOffset')
  .int32('length')
  .int32('leaderEpoch')
  .int8('magic')
  .uint32('crc')
  .int16('attributes')
  .int32('lastOffsetDelta')
  .int64('baseTimestamp')
  .int64('maxTimestamp')
  .int64('producerId')
  .int16('producerEpoch')
  .int32('baseSequence')
  .int32('count')

/** Bytes that the three above read. */
export const layoutBytes = { request: 14, response: 8, batch: 61 } as const
