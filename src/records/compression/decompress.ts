/**
 * Inflating the records of a batch, never beyond a limit: a 13 kB batch that a broker accepts can hold 400 MiB.
 * Memory and time are bounded by the limit, not by what the bytes claim.
 */
import { gunzipSync } from 'node:zlib'
import { type Codec, codecs } from '../batch.ts'
import { notOfCodec, tooLarge } from './errors.ts'
import { inflateLz4 } from './lz4.ts'
import { inflateSnappy } from './snappy.ts'
import { inflateZstd } from './zstd.ts'

/**
 * What `bytes` inflate to; `bytes` itself for codec none.
 * @throws RecordsError HG_RECORDS_TOO_LARGE beyond `maxBytes`, HG_RECORDS_CODEC for bytes that are not of the codec.
 */
export function decompress(codec: Codec, bytes: Buffer, maxBytes: number): Buffer {
  switch (codec) {
    case codecs.none:
      return bytes
    case codecs.gzip:
      return inflateGzip(bytes, maxBytes)
    case codecs.snappy:
      return inflateSnappy(bytes, maxBytes)
    case codecs.lz4:
      return inflateLz4(bytes, maxBytes)
    case codecs.zstd:
      return inflateZstd(bytes, maxBytes)
  }
}

function inflateGzip(bytes: Buffer, maxBytes: number): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: Math.max(maxBytes, 1) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge('gzip', maxBytes)
    throw notOfCodec('gzip', error)
  }
}
