/** Partition logs: producing, idempotence, fetching, sessions, offsets, epochs, deleted records. */
import { fetch } from '../../../src/protocol/generated/01-fetch.ts'
import type { FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import { deleteRecords } from '../../../src/protocol/generated/21-delete-records.ts'
import { initProducerId } from '../../../src/protocol/generated/22-init-producer-id.ts'
import type { InitProducerIdResponse } from '../../../src/protocol/generated/22-init-producer-id.ts'
import { offsetForLeaderEpoch } from '../../../src/protocol/generated/23-offset-for-leader-epoch.ts'
import { batch, offsetAt, read, seen, TIME_MS, write } from './log-client.ts'
import { eventually, type Fact, fact, type Side, type Topic, type Wire } from './side.ts'

async function place(side: Side): Promise<[Wire, Topic]> {
  return [await side.wire(), await side.topic()]
}

const nowhere: Topic = { name: 'no-such-topic', id: 'ZG9lcy1ub3QtZXhpc3QtMQ' }

/** A fresh broker answers 14 until it has been given a block of ids. */
function newProducer(wire: Wire): Promise<InitProducerIdResponse> {
  return eventually(
    () => wire.call(initProducerId, 4, { transactionalId: null, transactionTimeoutMs: 0 }),
    (answer) => answer.errorCode === 0,
  )
}

const producing: Fact[] = [
  fact(
    'batches get the next offsets; unknown topics are 3, topic ids 100; a broken checksum is 2',
    [
      [0, 0],
      [0, 2],
      [3, -1],
      [100, -1],
      [2, -1],
      [0, 3],
    ],
    async (side) => {
      const [wire, topic] = await place(side)
      const broken = batch('zz')
      broken[broken.length - 1] = (broken[broken.length - 1] ?? 0) ^ 1
      return [
        await write(wire, topic, batch('ab')),
        await write(wire, topic, batch('c'), null, 13),
        await write(wire, nowhere, batch('d')),
        await write(wire, nowhere, batch('d'), null, 13),
        await write(wire, topic, broken),
        await write(wire, topic, batch('e')),
      ]
    },
  ),
  fact(
    'sequences: the last five batches again are answered with their offsets, older ones and gaps are refused',
    {
      first: [
        [0, 0],
        [0, 2],
        [0, 3],
        [0, 4],
        [0, 5],
      ],
      again: [
        [0, 0],
        [0, 5],
      ],
      gap: [45, -1],
      sixth: [0, 6],
      old: [45, -1],
    },
    async (side) => {
      const [wire, topic] = await place(side)
      const { producerId, producerEpoch } = await newProducer(wire)
      const send = (keys: string, baseSequence: number) =>
        write(wire, topic, batch(keys, { producerId, producerEpoch, baseSequence }))
      const first = []
      for (const [keys, sequence] of [
        ['ab', 0],
        ['c', 2],
        ['d', 3],
        ['e', 4],
        ['f', 5],
      ] as const)
        first.push(await send(keys, sequence))
      const again = [await send('ab', 0), await send('f', 5)]
      const gap = await send('x', 9)
      const sixth = await send('g', 6)
      return { first, again, gap, sixth, old: await send('ab', 0) }
    },
  ),
  fact(
    'epochs: a higher one begins at sequence 0, or is 45; a lower one is 47; the records are there once',
    [[45, -1], [0, 2], [47, -1], '0a 1b 2c'],
    async (side) => {
      const [wire, topic] = await place(side)
      const { producerId } = await newProducer(wire)
      const send = (keys: string, baseSequence: number, producerEpoch: number) =>
        write(wire, topic, batch(keys, { producerId, producerEpoch, baseSequence }))
      await send('ab', 0, 0)
      const codes = [await send('x', 2, 1), await send('c', 0, 1), await send('x', 2, 0)]
      return [...codes, seen(await read(wire, topic, 0))['records']]
    },
  ),
  fact('a producer that a partition has not seen may begin at any sequence', [0, 0], async (side) => {
    const [wire, topic] = await place(side)
    const { producerId } = await newProducer(wire)
    return write(wire, topic, batch('a', { producerId, producerEpoch: 0, baseSequence: 17 }))
  }),
]

const fetching: Fact[] = [
  fact(
    'offsets out of range: 1 below and above; at the end nothing; inside a batch the whole batch',
    {
      above: { errorCode: 1, ends: [-1, -1, -1], records: '' },
      below: { errorCode: 1, ends: [-1, -1, -1], records: '' },
      end: { errorCode: 0, ends: [3, 3, 0], records: '' },
      inside: { errorCode: 0, ends: [3, 3, 0], records: '0a 1b 2c' },
    },
    async (side) => {
      const [wire, topic] = await place(side)
      await write(wire, topic, batch('abc'))
      const at = async (offset: number) => seen(await read(wire, topic, offset))
      return { above: await at(4), below: await at(-1), end: await at(3), inside: await at(1) }
    },
  ),
  fact('the first batch comes whole however few bytes are asked for; the second is cut', [['0a'], 0], async (side) => {
    const [wire, topic] = await place(side)
    await write(wire, topic, batch('a'))
    const size = batch('a').length
    await write(wire, topic, batch('b'))
    const small = await read(wire, topic, 0, { partitionMaxBytes: 1 })
    const cut = await read(wire, topic, 0, { partitionMaxBytes: size + 10 })
    const length = cut.responses[0]?.partitions[0]?.records?.length ?? -1
    return [[seen(small)['records']], Math.min(0, length - size - 10)]
  }),
  fact('unknown topics: 3 by name, 100 by id', [3, 100, 0], async (side) => {
    const [wire, topic] = await place(side)
    const codes = [await read(wire, nowhere, 0), await read(wire, nowhere, 0, { version: 16 })]
    const known = await read(wire, topic, 0, { version: 16 })
    return [...codes, known].map((answer) => answer.responses[0]?.partitions[0]?.errorCode)
  }),
  fact('a leader epoch that is too new: 75', [75, 0], async (side) => {
    const [wire, topic] = await place(side)
    const newer = await read(wire, topic, 0, { currentLeaderEpoch: 9 })
    return [newer, await read(wire, topic, 0, { currentLeaderEpoch: 0 })].map((a) => seen(a)['errorCode'])
  }),
  fact(
    'a long poll is answered when something is produced, and later requests after it',
    ['0a', ['poll', 'next']],
    async (side) => {
      const [wire, topic] = await place(side)
      const other = await side.wire()
      const order: string[] = []
      const poll = read(wire, topic, 0, { request: { maxWaitMs: 20_000 } }).then((a) => (order.push('poll'), a))
      const next = read(wire, topic, 0).then(() => order.push('next'))
      await write(other, topic, batch('a'))
      const polled = seen(await poll)['records']
      await next
      return [polled, order]
    },
  ),
  fact('a long poll ends at once on an error', 1, async (side) => {
    const [wire, topic] = await place(side)
    return seen(await read(wire, topic, 5, { request: { maxWaitMs: 20_000 } }))['errorCode']
  }),
  fact('a long poll that waits for more bytes than come ends by its time', '0a', async (side) => {
    const [wire, topic] = await place(side)
    await write(wire, topic, batch('a'))
    return seen(await read(wire, topic, 0, { request: { maxWaitMs: 50, minBytes: 100_000 } }))['records']
  }),
]

/** [error code, whether there is a session, records or number of partitions] */
function session(answer: FetchResponse): unknown[] {
  return [answer.errorCode, answer.sessionId !== 0, seen(answer)['records'] ?? 0]
}

const sessions: Fact[] = [
  fact(
    'epoch −1: no session; epoch 0: a new one',
    [
      [0, false, '0a'],
      [0, true, '0a'],
    ],
    async (side) => {
      const [wire, topic] = await place(side)
      await write(wire, topic, batch('a'))
      const without = await read(wire, topic, 0, { request: { sessionId: 0, sessionEpoch: -1 } })
      const opened = await read(wire, topic, 0, { request: { sessionId: 0, sessionEpoch: 0 } })
      return [session(without), session(opened)]
    },
  ),
  fact(
    'a session: nothing new is no partition, changed positions are remembered, a wrong epoch is 71, an unknown id 70',
    {
      idle: [0, true, 0],
      moved: [0, true, '1b'],
      wrong: [71, false, 0],
      unknown: [70, false, 0],
      closed: [0, false, 0],
      gone: 70,
    },
    async (side) => {
      const [wire, topic] = await place(side)
      await write(wire, topic, batch('a'))
      const { sessionId } = await read(wire, topic, 0, { request: { sessionId: 0, sessionEpoch: 0 } })
      const bare = (sessionEpoch: number, id = sessionId) =>
        wire.call(fetch, 12, { maxWaitMs: 0, minBytes: 1, sessionId: id, sessionEpoch })
      const idle = session(await read(wire, topic, 1, { request: { sessionId, sessionEpoch: 1 } }))
      await write(wire, topic, batch('b'))
      const moved = session(await bare(2))
      const wrong = session(await bare(7))
      const unknown = session(await bare(1, 12345))
      const closed = session(await bare(-1))
      return { idle, moved, wrong, unknown, closed, gone: (await bare(3)).errorCode }
    },
  ),
]

const offsets: Fact[] = [
  fact(
    'ListOffsets: ends, latest timestamp, by time (the first at or after it), and beyond',
    [
      [0, 0, -1, 0],
      [0, 3, -1, 0],
      [0, 2, TIME_MS + 10, 0],
      [0, 0, TIME_MS, 0],
      [0, 2, TIME_MS + 10, 0],
      [0, -1, -1, -1],
    ],
    async (side) => {
      const [wire, topic] = await place(side)
      await write(wire, topic, batch('ab'))
      await write(wire, topic, batch('c', { baseTimestamp: TIME_MS + 10 }))
      const asked = [-2, -1, -3, TIME_MS, TIME_MS + 1, TIME_MS + 11]
      const answers = []
      for (const timestamp of asked) answers.push(await offsetAt(wire, topic, timestamp))
      return answers
    },
  ),
  fact(
    'ListOffsets of an empty log, and of no topic',
    [[0, 0, -1, 0], [0, 0, -1, 0], [0, -1, -1, -1], 3],
    async (side) => {
      const [wire, topic] = await place(side)
      const empty = [await offsetAt(wire, topic, -2), await offsetAt(wire, topic, -1), await offsetAt(wire, topic, -3)]
      return [...empty, (await offsetAt(wire, nowhere, -1))[0]]
    },
  ),
  fact(
    'OffsetForLeaderEpoch: the current one ends at the end, later ones are unknown; a wrong current epoch is 75',
    [
      [0, 0, 2],
      [0, -1, -1],
      [75, -1, -1],
      [3, -1, -1],
    ],
    async (side) => {
      const [wire, topic] = await place(side)
      await write(wire, topic, batch('ab'))
      const ask = async (leaderEpoch: number, currentLeaderEpoch: number, name = topic.name) => {
        const partitions = [{ partition: 0, leaderEpoch, currentLeaderEpoch }]
        const answer = await wire.call(offsetForLeaderEpoch, 4, {
          replicaId: -1,
          topics: [{ topic: name, partitions }],
        })
        const p = answer.topics[0]?.partitions[0]
        return [p?.errorCode, p?.leaderEpoch, p?.endOffset]
      }
      return [await ask(0, -1), await ask(5, -1), await ask(0, 9), await ask(0, -1, nowhere.name)]
    },
  ),
  fact(
    'DeleteRecords: the log starts there, below is 1; −1 deletes all; beyond the end is 1',
    {
      beyond: [1, -1],
      first: [0, 2],
      below: { errorCode: 1, ends: [-1, -1, -1], records: '' },
      earliest: [0, 2, -1, 0],
      all: [0, 4],
    },
    async (side) => {
      const [wire, topic] = await place(side)
      for (const key of 'abcd') await write(wire, topic, batch(key))
      const erase = async (offset: number) => {
        const topics = [{ name: topic.name, partitions: [{ partitionIndex: 0, offset }] }]
        const p = (await wire.call(deleteRecords, 2, { topics, timeoutMs: 10_000 })).topics[0]?.partitions[0]
        return [p?.errorCode, p?.lowWatermark]
      }
      const beyond = await erase(9)
      const first = await erase(2)
      const below = seen(await read(wire, topic, 1))
      const earliest = await offsetAt(wire, topic, -2)
      return { beyond, first, below, earliest, all: await erase(-1) }
    },
  ),
]

export const logFacts: readonly Fact[] = [...producing, ...fetching, ...sessions, ...offsets]
