/** Clients and topics at the edge of what there is, while a topic with layouts grows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { errorCodes } from '../../../../../src/protocol/error-codes.ts'
import type { ProduceResponse } from '../../../../../src/protocol/generated/00-produce.ts'
import { buildBatch } from '../../../../../src/records/build.ts'
import { LayoutsRig, TOPIC } from '../../../../support/layouts-rig.ts'

const refresh = errorCodes.NOT_LEADER_OR_FOLLOWER
const isSealed = (rig: LayoutsRig) => rig.topic()?.layouts[1]?.seal !== undefined

test('odd clients: a topic of a thousand partitions grows to two thousand', async () => {
  const rig = await LayoutsRig.start({ count: 1000, proxies: 2 })
  const client = await rig.client()
  assert.equal(await client.count(), 1000)
  for (let partition = 0; partition < 1000; partition += 100) client.produce(partition, [`k${partition}`], 'v')
  assert.equal((await rig.settled(rig.expand(2000))).kind, 'opened')
  assert.equal(await client.count(), 2000)
  await rig.until(() => isSealed(rig), 'sealed', 100_000)
  await rig.stop()
})

test('odd clients: a producer without a client id is waited for as any other', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, null)
  await client.count()
  const sent = client.produce(0, ['a'], 'x')
  await rig.until(() => sent.result()?.errorCode === 0, 'a record')
  await rig.settled(rig.expand(6))
  await rig.pause(10_000)
  assert.equal(isSealed(rig), false, 'it was not shown the new count')
  // Its idle connection was closed, so that it asks.
  const again = client.peer.closed ? await rig.client(0, null) : client
  assert.equal(await again.count(), 6)
  await rig.until(() => isSealed(rig), 'sealed')
  await rig.stop()
})

const good = buildBatch({ records: [{ key: Buffer.from('a'), value: Buffer.from('b') }] })

function changed(change: (batch: Buffer) => void): Buffer {
  const batch = Buffer.from(good)
  change(batch)
  return batch
}

/** Places in a batch: length 8, magic 16, checksum 17, attributes 21, count 57. */
const malformed: Readonly<Record<string, Buffer | null>> = {
  null: null,
  empty: Buffer.alloc(0),
  short: Buffer.from([1, 2, 3]),
  zeros: Buffer.alloc(61),
  'cut off': good.subarray(0, -3),
  'wrong checksum': changed((batch) => batch.fill(1, 17, 21)),
  'too many records': changed((batch) => batch.writeInt32BE(1e9, 57)),
  'negative count': changed((batch) => batch.writeInt32BE(-1, 57)),
  'magic 1': changed((batch) => batch.fill(1, 16, 17)),
  'magic 9': changed((batch) => batch.fill(9, 16, 17)),
  'not gzip': changed((batch) => batch.writeInt16BE(1, 21)),
  'unknown codec': changed((batch) => batch.writeInt16BE(7, 21)),
  'huge length': changed((batch) => batch.writeInt32BE(0x7fffffff, 8)),
  'negative length': changed((batch) => batch.writeInt32BE(-5, 8)),
  'two batches': Buffer.concat([good, good]),
  'bytes behind it': Buffer.concat([good, Buffer.alloc(20, 255)]),
  'control batch': changed((batch) => batch.writeInt16BE(0x30, 21)),
}

/** The broker's error code for each, after being asked to send it again. */
async function answers(rig: LayoutsRig): Promise<Record<string, number>> {
  const codes: Record<string, number> = {}
  const client = await rig.client(0, 'bad')
  for (const [name, records] of Object.entries(malformed)) {
    const topicData = [{ name: TOPIC, partitionData: [{ index: 0, records }] }]
    const request = { transactionalId: null, acks: -1, timeoutMs: 1000, topicData }
    for (let tries = 0; tries < 200 && (codes[name] ?? refresh) === refresh; tries++) {
      const { responses } = (await client.ask(apiKeys.Produce, 9, request)) as ProduceResponse
      codes[name] = responses[0]?.partitionResponses[0]?.errorCode ?? 0
      if (codes[name] === refresh) await rig.pause(100)
    }
  }
  await client.count()
  client.close()
  return codes
}

test('odd clients: malformed batches are answered as the broker does, at rest and in every phase of a change', async () => {
  const rig = await LayoutsRig.start()
  const atRest = await answers(rig)
  assert.ok(
    Object.values(atRest).every((code) => code !== 0),
    JSON.stringify(atRest),
  )
  await rig.settled(rig.expand(5))
  assert.deepEqual(await answers(rig), atRest)
  await rig.until(() => isSealed(rig), 'sealed', 400_000)
  assert.deepEqual(await answers(rig), atRest)
  assert.deepEqual(
    rig.proxies[0]?.log.lines.filter(({ level }) => level === 'error'),
    [],
  )
  await rig.stop()
})
