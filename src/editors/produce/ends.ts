/** Where logs end, asked on a client's own connection: behind a Produce with acks=0, which has no answer of its own. */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { requestBytes } from '../../protocol/encode.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Connection } from '../../pipeline/connection.ts'

const api = codec(apiKeys.ListOffsets)
/** Old enough for every broker that Produce v3 or later speaks to. */
const VERSION = 2
/** The timestamp that asks for the end. */
const LATEST = -1

/**
 * High watermarks by `topic/partition`; left out where the broker refused. A broker serves a connection's requests one
 * after the other, so what was sent before is in the log (though not necessarily on every replica).
 */
export async function readEnds(
  connection: Connection,
  partitions: readonly { topic: string; partition: number }[],
): Promise<ReadonlyMap<string, number>> {
  const byTopic = new Map<string, { partitionIndex: number; timestamp: number }[]>()
  for (const { topic, partition } of partitions) {
    const entry = { partitionIndex: partition, timestamp: LATEST }
    const known = byTopic.get(topic)
    if (known === undefined) byTopic.set(topic, [entry])
    else known.push(entry)
  }
  const topics = [...byTopic].map(([name, entries]) => ({ name, partitions: entries }))
  const request = { replicaId: -1, isolationLevel: 0, topics }
  const { frame, bodyAt } = await connection.ask(apiKeys.ListOffsets, VERSION, requestBytes(api, request, VERSION))
  const response = api.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), VERSION)
  const ends = response.topics.flatMap(({ name, partitions: entries }) =>
    entries.flatMap(({ partitionIndex, errorCode, offset }) =>
      errorCode === 0 ? [[`${name}/${partitionIndex}`, offset] as const] : [],
    ),
  )
  return new Map(ends)
}
