/**
 * Clients that are strict about what a broker answers work with the model as with Kafka: they produce, also in
 * transactions, and two members share a group and commit.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type FamilyName, prepareFamily } from '../../../scripts/setup/families.ts'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { type ClientEvent, ClientProgram } from '../client.ts'

const families: readonly FamilyName[] = ['java', 'franz-go']
const PARTITIONS = 3
const RECORDS = 60

let model: FakeBroker
before(async () => (model = await FakeBroker.start(await nodeRuntime())))
after(() => model.stop())

function sequences(events: readonly ClientEvent[]): number[] {
  const delivered = events.filter((e) => e.event === 'delivered').map((e) => e.sequence ?? -1)
  return delivered.sort((a, b) => a - b)
}

for (const family of families) {
  const program = await prepareFamily(family)
  if ('install' in program) {
    test(family, { skip: `needs: ${program.install}` }, () => {})
    continue
  }
  describe(family, { concurrency: 1 }, () => {
    let client: ClientProgram
    before(() => (client = new ClientProgram(family, program)))
    after(() => client.close())

    test('what is produced idempotently is consumed once by two members of a group, and the commits are there', async () => {
      const bootstrap = model.bootstrap[0] ?? ''
      const [topic, group] = [`plain-${family}`, `group-${family}`]
      model.cluster.createTopic(topic, PARTITIONS)
      const members = ['a', 'b'].map((member) =>
        client.start({ cmd: 'consume', bootstrap, topics: [topic], group, member, commit: 'batch' }),
      )
      const seen = (): ClientEvent[] => members.flatMap((run) => [...run.events])
      // Members join one after the other: the second one's share says that both are in.
      for (const run of members)
        await run.until('a share', (events) => events.some((e) => e.event === 'assigned' && e.partitions?.length))
      await client.run({
        cmd: 'produce',
        bootstrap,
        topic,
        count: RECORDS,
        partitions: PARTITIONS,
        idempotent: true,
      })
      await members[0]?.until('all records', () => sequences(seen()).length >= RECORDS)
      for (const run of members) await run.stop()
      assert.deepEqual(
        sequences(seen()),
        Array.from({ length: RECORDS }, (_, i) => i),
      )
      const rows = model.cluster.coordinators.get(group)?.offsets
      const committed = Array.from({ length: PARTITIONS }, (_, p) => rows?.get(topic, p)?.offset ?? 0)
      assert.equal(
        committed.reduce((sum, offset) => sum + offset, 0),
        RECORDS,
      )
    })

    test('of transactions, the committed ones are read', async () => {
      const bootstrap = model.bootstrap[0] ?? ''
      const topic = `transactions-${family}`
      model.cluster.createTopic(topic, 1)
      const transactions = { transactionalId: topic, perTransaction: 10, abortEvery: 3 }
      await client.run({ cmd: 'produce', bootstrap, topic, count: RECORDS, partitions: 1, ...transactions })
      const committed = Array.from({ length: RECORDS }, (_, i) => i).filter((i) => Math.floor(i / 10) % 3 !== 2)
      const count = committed.length
      const isolation = 'read_committed'
      const events = await client.run({ cmd: 'consume', bootstrap, topics: [topic], group: topic, count, isolation })
      assert.deepEqual(sequences(events), committed)
    })
  })
}
