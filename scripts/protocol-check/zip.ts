/** Reads files out of a jar: just enough of the zip format for what Maven serves. */
import { inflateRawSync } from 'node:zlib'

const endSignature = 0x06054b50
const entrySignature = 0x02014b50
const deflated = 8

/** The files whose names `wanted` accepts, in the order of the archive. */
export function readZip(archive: Buffer, wanted: (name: string) => boolean): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  const end = archive.lastIndexOf(Buffer.from('504b0506', 'hex'))
  if (end < 0 || archive.readUInt32LE(end) !== endSignature) throw new Error('not a zip archive')
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (archive.readUInt32LE(at) !== entrySignature) throw new Error('damaged zip directory')
    const method = archive.readUInt16LE(at + 10)
    const size = archive.readUInt32LE(at + 20)
    const nameLength = archive.readUInt16LE(at + 28)
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const local = archive.readUInt32LE(at + 42)
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
    if (!wanted(name)) continue
    const from = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    const content = archive.subarray(from, from + size)
    files.set(name, method === deflated ? inflateRawSync(content) : content)
  }
  return files
}
