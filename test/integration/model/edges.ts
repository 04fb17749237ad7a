/** What is refused, and what ends before its time: the corners that clients meet when something else went wrong. */
import { produce } from '../../../src/protocol/generated/00-produce.ts'
import { metadata } from '../../../src/protocol/generated/03-metadata.ts'
import { offsetCommit } from '../../../src/protocol/generated/08-offset-commit.ts'
import { describeGroups } from '../../../src/protocol/generated/15-describe-groups.ts'
import { syncGroup } from '../../../src/protocol/generated/14-sync-group.ts'
import { createTopics } from '../../../src/protocol/generated/19-create-topics.ts'
import { deleteTopics } from '../../../src/protocol/generated/20-delete-topics.ts'
import { createPartitions } from '../../../src/protocol/generated/37-create-partitions.ts'
import { offsetDelete } from '../../../src/protocol/generated/47-offset-delete.ts'
import { batch, read, seen, write } from './log-client.ts'
import { joinedAs, Member, pair } from './member.ts'
import { type Fact, fact } from './side.ts'

const missing = 'ZG9lcy1ub3QtZXhpc3QtMQ'

export const edgeFacts: readonly Fact[] = [
  fact('acks=0 gets no answer, the next request does; acks=5 is 21', [21, '0a'], async (side) => {
    const [wire, topic] = [await side.wire(), await side.topic()]
    const ask = (acks: number, key: string) => ({
      acks,
      timeoutMs: 1000,
      topicData: [{ name: topic.name, partitionData: [{ index: 0, records: batch(key) }] }],
    })
    const silent = await side.wire()
    silent.call(produce, 11, ask(0, 'a')).catch(() => {})
    const refused = await wire.call(produce, 11, ask(5, 'b'))
    const poll = await read(wire, topic, 0, { request: { maxWaitMs: 20_000 } })
    return [refused.responses[0]?.partitionResponses[0]?.errorCode, seen(poll)['records']]
  }),
  fact('two batches for one partition in one request are refused: 87', [87, [0, 0]], async (side) => {
    const [wire, topic] = [await side.wire(), await side.topic()]
    const both = await write(wire, topic, Buffer.concat([batch('a'), batch('b')]))
    return [both[0], await write(wire, topic, batch('c'))]
  }),
  fact('Metadata: unknown by name 3, by id 100', [3, 100], async (side) => {
    const wire = await side.wire()
    const ask = async (topic: object) => {
      const request = { topics: [topic], allowAutoTopicCreation: false }
      return (await wire.call(metadata, 12, request)).topics[0]?.errorCode
    }
    return [await ask({ name: side.name() }), await ask({ name: null, topicId: missing })]
  }),
  fact('topics: again 36, bad name 17, fewer partitions 37, unknown 3', [36, 17, 37, 3, 0, 0], async (side) => {
    const [wire, { name }] = [await side.wire(), await side.topic(2)]
    const create = async (topic: string) => {
      const topics = [{ name: topic, numPartitions: 1, replicationFactor: 1 }]
      return (await wire.call(createTopics, 7, { topics })).topics[0]?.errorCode
    }
    const grow = async (count: number) =>
      (await wire.call(createPartitions, 3, { topics: [{ name, count, assignments: null }], timeoutMs: 10_000 }))
        .results[0]?.errorCode
    const erase = async (topic: string) =>
      (await wire.call(deleteTopics, 6, { topics: [{ name: topic }], timeoutMs: 10_000 })).responses[0]?.errorCode
    const codes = [await create(name), await create('a b'), await grow(1), await erase(side.name())]
    return [...codes, await grow(3), await erase(name)]
  }),
  fact(
    'DescribeGroups of no group: v5 Dead and 0, v6 69',
    [
      [0, 'Dead'],
      [69, 'Dead'],
    ],
    async (side) => {
      const wire = await side.wire()
      const ask = async (version: number) => {
        const group = (await wire.call(describeGroups, version, { groups: [side.name()] })).groups[0]
        return [group?.errorCode, group?.groupState]
      }
      return [await ask(5), await ask(6)]
    },
  ),
  fact('OffsetCommit v10: a topic id that nobody has is 100', 100, async (side) => {
    const wire = await side.wire()
    const partitions = [{ partitionIndex: 0, committedOffset: 1, committedMetadata: '' }]
    const answer = await wire.call(offsetCommit, 10, {
      groupId: side.name(),
      topics: [{ topicId: missing, partitions }],
    })
    return answer.topics[0]?.partitions[0]?.errorCode
  }),
  fact(
    'OffsetDelete: a subscription that cannot be read is one to every topic, 86; another kind of group 68',
    [
      [0, 86],
      [68, undefined],
    ],
    async (side) => {
      const topic = await side.topic()
      const topics = [{ name: topic.name, partitions: [{ partitionIndex: 0 }] }]
      const codes = []
      for (const protocolType of ['consumer', 'connect']) {
        const member = new Member(side.name(), await side.wire())
        await member.join({ protocolType })
        await member.wire.call(syncGroup, 3, { groupId: member.group, generationId: 1, memberId: member.id })
        const answer = await member.wire.call(offsetDelete, 0, { groupId: member.group, topics })
        codes.push([answer.errorCode, answer.topics[0]?.partitions[0]?.errorCode])
      }
      return codes
    },
  ),
  fact(
    'a member that does not join again within the rebalance timeout is out, and the rest goes on without it',
    [[0, 1, true, 1], 25],
    async (side) => {
      const { leader, follower, generation } = await pair(side, [], { rebalanceTimeoutMs: 4000 })
      const joined = await leader.join({ rebalanceTimeoutMs: 4000 })
      return [joinedAs(joined, generation), await follower.beat()]
    },
  ),
  fact('a member whose SyncGroup is held when a rebalance begins is told 27', 27, async (side) => {
    const { leader, follower } = await pair(side)
    const held = leader.join()
    await follower.told()
    await follower.join()
    await held
    const waiting = follower.sync()
    const next = leader.join({ bytes: 'other' })
    const code = (await waiting).errorCode
    await follower.join()
    await next
    return code
  }),
  fact(
    'completing: a member that joins again with the same bytes is answered again',
    [
      [0, 1, true, 2],
      [0, 1, false, 0],
    ],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const held = leader.join()
      await follower.told()
      await follower.join()
      await held
      return [joinedAs(await leader.join(), generation), joinedAs(await follower.join(), generation)]
    },
  ),
  fact(
    'static members: an id with the instance of another is 82, an instance without its id 25',
    [82, 82, 25],
    async (side) => {
      const { leader, follower } = await pair(side, ['a', 'b'])
      const mixed = new Member(leader.group, await side.wire(), 'a')
      mixed.id = follower.id
      const unnamed = new Member(leader.group, await side.wire(), 'zz')
      unnamed.id = leader.id
      return [
        await mixed.beat(leader.generation),
        (await mixed.join()).errorCode,
        await unnamed.beat(leader.generation),
      ]
    },
  ),
]
