/** Transactions: what readers see, who is fenced, and offsets that wait for the end. */
import { initProducerId } from '../../../src/protocol/generated/22-init-producer-id.ts'
import { addPartitionsToTxn } from '../../../src/protocol/generated/24-add-partitions-to-txn.ts'
import { addOffsetsToTxn } from '../../../src/protocol/generated/25-add-offsets-to-txn.ts'
import { endTxn } from '../../../src/protocol/generated/26-end-txn.ts'
import { txnOffsetCommit } from '../../../src/protocol/generated/28-txn-offset-commit.ts'
import { committed } from './commits.ts'
import { batch, offsetAt, read, seen, write } from './log-client.ts'
import { Member, pair } from './member.ts'
import { eventually, type Fact, fact, type Side, type Topic, type Wire } from './side.ts'

const CONCURRENT = 51
/** What a fresh broker answers until it has been given a block of producer ids. */
const LOADING = 14
const notBusy = (code: number | undefined): boolean => code !== CONCURRENT

/** A transactional producer of the first protocol: partitions and groups are added by requests of their own. */
class Producer {
  readonly wire: Wire
  readonly id: string
  producerId = -1
  producerEpoch = -1
  #sequence = 0

  constructor(wire: Wire, id: string) {
    this.wire = wire
    this.id = id
  }

  /** Waits while the coordinator still ends the former transaction. */
  async init(): Promise<number> {
    const request = { transactionalId: this.id, transactionTimeoutMs: 30_000 }
    const answer = await eventually(
      () => this.wire.call(initProducerId, 4, request),
      ({ errorCode }) => notBusy(errorCode) && errorCode !== LOADING,
    )
    this.producerId = answer.producerId
    this.producerEpoch = answer.producerEpoch
    this.#sequence = 0
    return answer.errorCode
  }

  async add(topic: Topic, version = 3): Promise<number | undefined> {
    const ask = async (): Promise<number | undefined> => {
      const answer = await this.wire.call(addPartitionsToTxn, version, {
        v3AndBelowTransactionalId: this.id,
        v3AndBelowProducerId: this.producerId,
        v3AndBelowProducerEpoch: this.producerEpoch,
        v3AndBelowTopics: [{ name: topic.name, partitions: [0] }],
      })
      return answer.resultsByTopicV3AndBelow[0]?.resultsByPartition[0]?.partitionErrorCode
    }
    return eventually(ask, notBusy)
  }

  async send(topic: Topic, keys: string, version = 11): Promise<[number, number]> {
    const { producerId, producerEpoch } = this
    const records = batch(keys, { producerId, producerEpoch, baseSequence: this.#sequence, transactional: true })
    const answer = await write(this.wire, topic, records, this.id, version)
    if (answer[0] === 0) this.#sequence += keys.length
    return answer
  }

  async end(commit: boolean, version = 3): Promise<number> {
    const { producerId, producerEpoch } = this
    const request = { transactionalId: this.id, producerId, producerEpoch, committed: commit }
    const answer = await eventually(
      () => this.wire.call(endTxn, version, request),
      (a) => notBusy(a.errorCode),
    )
    if (version >= 5 && answer.errorCode === 0) {
      this.producerId = answer.producerId
      this.producerEpoch = answer.producerEpoch
      if (answer.producerEpoch !== producerEpoch) this.#sequence = 0
    }
    return answer.errorCode
  }

  async addGroup(group: string): Promise<number> {
    const { id, producerId, producerEpoch } = this
    const request = { transactionalId: id, producerId, producerEpoch, groupId: group }
    const ask = async (): Promise<number> => (await this.wire.call(addOffsetsToTxn, 3, request)).errorCode
    return eventually(ask, notBusy)
  }

  async offsets(
    group: string,
    topic: Topic,
    offset: number,
    more: { version?: number; generation?: number; memberId?: string } = {},
  ): Promise<number | undefined> {
    const { version = 3, generation = -1, memberId = '' } = more
    const ask = async (): Promise<number | undefined> => {
      const answer = await this.wire.call(txnOffsetCommit, version, {
        transactionalId: this.id,
        groupId: group,
        producerId: this.producerId,
        producerEpoch: this.producerEpoch,
        ...(version >= 3 ? { generationId: generation, memberId } : {}),
        topics: [
          {
            name: topic.name,
            partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: '' }],
          },
        ],
      })
      return answer.topics[0]?.partitions[0]?.errorCode
    }
    return eventually(ask, notBusy)
  }

  /** The same id and epoch in another object, as a producer that does not know yet that it was fenced. */
  twin(): Producer {
    const twin = new Producer(this.wire, this.id)
    twin.producerId = this.producerId
    twin.producerEpoch = this.producerEpoch
    return twin
  }
}

async function producer(side: Side): Promise<Producer> {
  const made = new Producer(await side.wire(), side.name())
  await made.init()
  return made
}

/** Waits until the last stable offset is `offset`: markers are written after EndTxn was answered. */
async function stable(wire: Wire, topic: Topic, offset: number): Promise<void> {
  await eventually(
    () => offsetAt(wire, topic, -1, true),
    (answer) => answer[1] === offset,
  )
}

const reading: Fact[] = [
  fact(
    'an open transaction holds the last stable offset; committed readers stop there, others do not',
    {
      open: { errorCode: 0, ends: [4, 1, 0], records: '0a' },
      dirty: { errorCode: 0, ends: [4, 1, 0], records: '0a 1b 2c 3d' },
      latest: [1, 4],
      done: { errorCode: 0, ends: [5, 5, 0], records: '0a 1b 2c 3d 4!' },
    },
    async (side) => {
      const topic = await side.topic()
      const writer = await producer(side)
      const { wire } = writer
      await write(wire, topic, batch('a'))
      await writer.add(topic)
      await writer.send(topic, 'bc')
      await write(wire, topic, batch('d'))
      const open = seen(await read(wire, topic, 0, { committed: true }))
      const dirty = seen(await read(wire, topic, 0))
      const latest = [(await offsetAt(wire, topic, -1, true))[1], (await offsetAt(wire, topic, -1))[1]]
      await writer.end(true)
      await stable(wire, topic, 5)
      return { open, dirty, latest, done: seen(await read(wire, topic, 0, { committed: true })) }
    },
  ),
  fact(
    'aborted transactions are named to committed readers only, by what they read',
    { all: [[0, 0]], later: [], dirty: null, records: '0a 1b 2! 3c' },
    async (side) => {
      const topic = await side.topic()
      const writer = await producer(side)
      const { wire, producerId } = writer
      await writer.add(topic)
      await writer.send(topic, 'ab')
      await writer.end(false)
      await stable(wire, topic, 3)
      await write(wire, topic, batch('c'))
      const named = async (offset: number, committed: boolean): Promise<unknown> => {
        const p = (await read(wire, topic, offset, { committed })).responses[0]?.partitions[0]
        const aborted = p?.abortedTransactions
        return aborted == null ? null : aborted.map((t) => [t.producerId - producerId, t.firstOffset])
      }
      const records = seen(await read(wire, topic, 0))['records']
      return { all: await named(0, true), later: await named(3, true), dirty: await named(0, false), records }
    },
  ),
  fact('a transactional batch outside a transaction is refused: v10 48, v11 120', [48, 120], async (side) => {
    const topic = await side.topic()
    const writer = await producer(side)
    return [(await writer.send(topic, 'a', 10))[0], (await writer.send(topic, 'a', 11))[0]]
  }),
  fact('Produce v12 adds the partition itself; EndTxn v5 raises the epoch', [[0, 0], 0, 1, [47, -1]], async (side) => {
    const topic = await side.topic()
    const writer = await producer(side)
    const old = writer.twin()
    const sent = await writer.send(topic, 'a', 12)
    const ended = await writer.end(true, 5)
    await stable(writer.wire, topic, 2)
    return [sent, ended, writer.producerEpoch - old.producerEpoch, await old.send(topic, 'a', 12)]
  }),
]

const fencing: Fact[] = [
  fact(
    'InitProducerId again: the next epoch; the open transaction is aborted; the old producer is 47 or 90',
    { epoch: 1, records: '0a 1!', send: 47, add: [90, 47], end: [90, 47], unknown: 49 },
    async (side) => {
      const topic = await side.topic()
      const old = await producer(side)
      await old.add(topic)
      await old.send(topic, 'a')
      const next = new Producer(await side.wire(), old.id)
      await next.init()
      await stable(old.wire, topic, 2)
      const records = seen(await read(old.wire, topic, 0))['records']
      const send = (await old.send(topic, 'b'))[0]
      const add = [await old.add(topic), await old.add(topic, 1)]
      const end = [await old.end(true), await old.end(true, 1)]
      // Each InitProducerId that aborts a transaction raises the epoch once for the abort on some paths: only the order counts.
      const epoch = Math.sign(next.producerEpoch - old.producerEpoch)
      const stranger = next.twin()
      stranger.producerId += 1_000_000
      return { epoch, records, send, add, end, unknown: await stranger.add(topic) }
    },
  ),
  fact('EndTxn: 48 without a transaction; the same end again is 0, the other one 48', [48, 0, 0, 48], async (side) => {
    const topic = await side.topic()
    const writer = await producer(side)
    const early = await writer.end(true)
    await writer.add(topic)
    await writer.send(topic, 'a')
    return [early, await writer.end(true), await writer.end(true), await writer.end(false)]
  }),
  fact('InitProducerId with an epoch of before: 90', [90, 0], async (side) => {
    const writer = await producer(side)
    const old = writer.twin()
    await writer.init()
    const claim = async ({ wire, id, producerId, producerEpoch }: Producer): Promise<number> => {
      const request = { transactionalId: id, transactionTimeoutMs: 30_000, producerId, producerEpoch }
      return (await wire.call(initProducerId, 4, request)).errorCode
    }
    await writer.init()
    return [await claim(old), await claim(writer)]
  }),
]

const offsets: Fact[] = [
  fact(
    'offsets of a transaction: pending is 88 to stable readers, is not listed, and is applied by commit',
    {
      pending: [[0, -1, '', 88]],
      loose: [[0, -1, '', 0]],
      listed: [],
      done: [[0, 7, '', 0]],
      aborted: [[0, 7, '', 0]],
    },
    async (side) => {
      const [topic, group] = [await side.topic(), side.name()]
      const writer = await producer(side)
      const { wire } = writer
      const rows = (requireStable: boolean, partitions?: number[]) =>
        committed(wire, group, topic.name, partitions, requireStable)
      await writer.addGroup(group)
      await writer.offsets(group, topic, 7)
      const [pending, loose, listed] = [await rows(true, [0]), await rows(false, [0]), await rows(true)]
      await writer.end(true)
      const settled = (answer: unknown[]): boolean => !JSON.stringify(answer).includes('88')
      const done = await eventually(() => rows(true, [0]), settled)
      await writer.addGroup(group)
      await writer.offsets(group, topic, 9)
      await writer.end(false)
      return { pending, loose, listed, done, aborted: await eventually(() => rows(true, [0]), settled) }
    },
  ),
  fact(
    'TxnOffsetCommit of members: old generation 22, current 0, none 0, another id 25',
    [22, 0, 0, 25],
    async (side) => {
      const topic = await side.topic()
      const { leader, generation } = await pair(side)
      const writer = await producer(side)
      await writer.addGroup(leader.group)
      const as = (generationOf: number, memberId: string) =>
        writer.offsets(leader.group, topic, 1, { generation: generationOf, memberId })
      const codes = [await as(generation - 1, leader.id), await as(generation, leader.id), await as(-1, '')]
      codes.push(await as(generation, 'stranger'))
      await writer.end(false)
      return codes
    },
  ),
  fact('TxnOffsetCommit is not refused while a rebalance completes', 0, async (side) => {
    const topic = await side.topic()
    const member = new Member(side.name(), await side.wire())
    await member.join()
    const writer = await producer(side)
    await writer.addGroup(member.group)
    const code = await writer.offsets(member.group, topic, 1, { generation: member.generation, memberId: member.id })
    await writer.end(false)
    return code
  }),
  fact('TxnOffsetCommit without AddOffsetsToTxn: v3 48, v4 120, v5 0', [48, 120, 0], async (side) => {
    const [topic, group] = [await side.topic(), side.name()]
    const codes = []
    for (const version of [3, 4, 5]) {
      const writer = await producer(side)
      codes.push(await writer.offsets(group, topic, 1, { version }))
      if (version === 5) await writer.end(false, 5)
    }
    return codes
  }),
  fact('TxnOffsetCommit with an epoch of before: 47', 47, async (side) => {
    const [topic, group] = [await side.topic(), side.name()]
    const writer = await producer(side)
    const old = writer.twin()
    await writer.init()
    await writer.addGroup(group)
    const code = await old.offsets(group, topic, 1)
    await writer.end(false)
    return code
  }),
  fact('of two transactions on one row the later append wins, not the later end', [[0, 150, '', 0]], async (side) => {
    const [topic, group] = [await side.topic(), side.name()]
    const [first, second] = [await producer(side), await producer(side)]
    for (const [writer, offset] of [
      [first, 200],
      [second, 150],
    ] as const) {
      await writer.addGroup(group)
      await writer.offsets(group, topic, offset)
    }
    for (const writer of [second, first]) await writer.end(true)
    return eventually(
      () => committed(first.wire, group, topic.name, [0], true),
      (answer) => !JSON.stringify(answer).includes('88'),
    )
  }),
]

export const transactionFacts: readonly Fact[] = [...reading, ...fencing, ...offsets]
