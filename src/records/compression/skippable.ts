/** Skippable frames, which lz4 and zstd streams share: a magic of sixteen, a length, and bytes that mean nothing here. */
import { notOfCodec } from './errors.ts'

const FIRST_MAGIC = 0x184d2a50
const LAST_MAGIC = 0x184d2a5f

/**
 * Where the skippable frame at `at` ends, or -1 if there is none.
 * @throws RecordsError when it ends after the input.
 */
export function skippableEnd(codec: string, bytes: Buffer, at: number): number {
  if (bytes.length - at < 8) return -1
  const magic = bytes.readUInt32LE(at)
  if (magic < FIRST_MAGIC || magic > LAST_MAGIC) return -1
  const end = at + 8 + bytes.readUInt32LE(at + 4)
  if (end > bytes.length) throw notOfCodec(codec, 'frame ends early')
  return end
}
