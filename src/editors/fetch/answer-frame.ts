/** A Fetch response as a frame. */
import { apiKeys, responseHeaderVersion } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { Writer } from '../../protocol/writer.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'

const api = codec(apiKeys.Fetch)

/** The correlation id is filled in when the answer leaves. */
export function frameAnswer(response: Parameters<typeof api.encodeResponse>[1], version: number): Frame {
  const writer = new Writer(estimate(response))
  writer.int32(0)
  writer.int32(0)
  if (responseHeaderVersion(apiKeys.Fetch, version) === 1) writer.uvarint(0)
  api.encodeResponse(writer, response, version)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return frameOf(bytes)
}

function estimate(response: Parameters<typeof api.encodeResponse>[1]): number {
  let bytes = 256
  for (const topic of response.responses ?? [])
    for (const partition of topic.partitions ?? []) bytes += 128 + (partition.records?.length ?? 0)
  return bytes
}
