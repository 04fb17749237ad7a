/** Committed offsets: row by row, and what is refused as a whole. */
import { offsetCommit } from '../../../src/protocol/generated/08-offset-commit.ts'
import { offsetFetch } from '../../../src/protocol/generated/09-offset-fetch.ts'
import { offsetDelete } from '../../../src/protocol/generated/47-offset-delete.ts'
import { encodeSubscription } from '../../../src/protocol/embedded.ts'
import { Member, pair } from './member.ts'
import { type Fact, fact, type Wire } from './side.ts'

interface Row {
  readonly partition: number
  readonly offset: number
  readonly metadata?: string | null
}

/** A commit without membership; error codes by partition. */
async function commit(wire: Wire, group: string, topic: string, rows: readonly Row[], version = 8): Promise<unknown> {
  const partitions = rows.map(({ partition, offset, metadata = '' }) => ({
    partitionIndex: partition,
    committedOffset: offset,
    committedMetadata: metadata,
  }))
  const answer = await wire.call(offsetCommit, version, { groupId: group, topics: [{ name: topic, partitions }] })
  const answered = answer.topics.flatMap((t) => t.partitions.map((p) => [p.partitionIndex, p.errorCode]))
  return answered.sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
}

/** [partition, offset, metadata, error code] of some rows, or (without `partitions`) of all there are. */
export async function committed(
  wire: Wire,
  group: string,
  topic: string,
  partitions?: readonly number[],
  requireStable = false,
): Promise<unknown[]> {
  const topics = partitions === undefined ? null : [{ name: topic, partitionIndexes: partitions }]
  const answer = await wire.call(offsetFetch, 8, { groups: [{ groupId: group, topics }], requireStable })
  const rows = answer.groups[0]?.topics.flatMap((t) => t.partitions) ?? []
  rows.sort((a, b) => a.partitionIndex - b.partitionIndex)
  return rows.map((r) => [r.partitionIndex, r.committedOffset, r.metadata, r.errorCode])
}

export const commitFacts: readonly Fact[] = [
  fact(
    'rows that were never committed are −1 and empty; asking for all lists none',
    [[[0, -1, '', 0]], []],
    async (side) => {
      const [topic, group, wire] = [await side.topic(), side.name(), await side.wire()]
      return [await committed(wire, group, topic.name, [0]), await committed(wire, group, topic.name)]
    },
  ),
  fact(
    'metadata comes back as it was, null as empty; −1 may be committed; asking for all lists every row',
    [
      [
        [0, 0],
        [1, 0],
        [2, 0],
      ],
      [
        [0, 3, 'a\n\u0000b', 0],
        [1, 4, '', 0],
        [2, -1, 'x', 0],
      ],
    ],
    async (side) => {
      const [topic, group, wire] = [await side.topic(3), side.name(), await side.wire()]
      const codes = await commit(wire, group, topic.name, [
        { partition: 0, offset: 3, metadata: 'a\n\u0000b' },
        { partition: 1, offset: 4, metadata: null },
        { partition: 2, offset: -1, metadata: 'x' },
      ])
      return [codes, await committed(wire, group, topic.name)]
    },
  ),
  fact(
    'rows fail one by one: metadata of 4097 characters 12, no such partition 3; the others are written',
    [
      [
        [0, 0],
        [1, 12],
        [7, 3],
      ],
      [[0, 1, 'ü'.repeat(4096), 0]],
    ],
    async (side) => {
      const [topic, group, wire] = [await side.topic(2), side.name(), await side.wire()]
      const codes = await commit(wire, group, topic.name, [
        { partition: 0, offset: 1, metadata: 'ü'.repeat(4096) },
        { partition: 1, offset: 2, metadata: 'x'.repeat(4097) },
        { partition: 7, offset: 3 },
      ])
      return [codes, await committed(wire, group, topic.name)]
    },
  ),
  fact(
    'the same row twice: the last wins; a lower offset later wins too',
    [[[0, 9, '', 0]], [[0, 4, '', 0]]],
    async (side) => {
      const [topic, group, wire] = [await side.topic(), side.name(), await side.wire()]
      await commit(wire, group, topic.name, [
        { partition: 0, offset: 5 },
        { partition: 0, offset: 9 },
      ])
      const first = await committed(wire, group, topic.name)
      await commit(wire, group, topic.name, [{ partition: 0, offset: 4 }])
      return [first, await committed(wire, group, topic.name)]
    },
  ),
  fact(
    'a commit without membership: 25 while the group has members, 0 when it has none',
    [[[0, 25]], [[0, 0]]],
    async (side) => {
      const topic = await side.topic()
      const member = new Member(side.name(), await side.wire())
      await member.join()
      const active = await commit(member.wire, member.group, topic.name, [{ partition: 0, offset: 1 }])
      await member.leave()
      return [active, await commit(member.wire, member.group, topic.name, [{ partition: 0, offset: 1 }])]
    },
  ),
  fact('a commit with a generation for a group that nobody knows: 22 up to v8, 69 from v9', [22, 69], async (side) => {
    const topic = await side.topic()
    const member = new Member(side.name(), await side.wire())
    member.id = 'nobody'
    return [await member.commit(topic.name, 3, 8), await member.commit(topic.name, 3, 9)]
  }),
  fact('an empty group that was known: a commit with a generation is 25', 25, async (side) => {
    const topic = await side.topic()
    const member = new Member(side.name(), await side.wire())
    await member.join()
    await member.leave()
    return member.commit(topic.name)
  }),
  fact('stable: any member may overwrite any row', [0, 0, 22, 22], async (side) => {
    const topic = await side.topic()
    const { leader, follower, generation } = await pair(side)
    const codes = [await leader.commit(topic.name), await follower.commit(topic.name)]
    return [...codes, await leader.commit(topic.name, generation - 1), await leader.commit(topic.name, generation + 1)]
  }),
  fact(
    'OffsetDelete: rows of a topic that a member subscribes to are 86, others go',
    [[0, 86], [0, 0], [[0, 5, '', 0]]],
    async (side) => {
      const [mine, other] = [await side.topic(), await side.topic()]
      const member = new Member(side.name(), await side.wire())
      const { wire, group } = member
      await member.join({ bytes: encodeSubscription({ version: 1, value: { topics: [mine.name] } }) })
      await member.sync()
      const erase = async (topic: string): Promise<unknown> => {
        const topics = [{ name: topic, partitions: [{ partitionIndex: 0 }] }]
        const answer = await wire.call(offsetDelete, 0, { groupId: group, topics })
        return [answer.errorCode, answer.topics[0]?.partitions[0]?.errorCode]
      }
      for (const { name } of [mine, other]) await member.commit(name)
      const codes = [await erase(mine.name), await erase(other.name)]
      return [...codes, await committed(wire, group, mine.name)]
    },
  ),
]
