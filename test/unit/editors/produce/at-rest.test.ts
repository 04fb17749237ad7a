/** What a Produce that passes unopened costs beside one that no editor looks at: the same writes. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { LogBroker, produce, produceRig, type ProduceRig } from '../../../support/produce-rig.ts'
import { Rig } from '../../../support/rig.ts'
import { VirtualSocket } from '../../../support/virtual-socket.ts'

/** Small ones one by one, several at once, and one that is longer than a chunk: sizes of all writes, and how many ticks. */
async function cost({ rig, client }: Pick<ProduceRig, 'rig' | 'client'>): Promise<{ writes: number[]; ticks: number }> {
  const write = mock.method(VirtualSocket.prototype, 'write')
  const soon = mock.method(rig.runtime, 'soon')
  let id = 0
  const send = (text: string): void => client.send(produce(++id, { data: { 'g/0': text } }))
  for (let i = 0; i < 5; i++) {
    send('small')
    await rig.run(() => client.frames.length === id)
  }
  for (let i = 0; i < 5; i++) send('pipelined')
  await rig.run(() => client.frames.length === id)
  send('long'.repeat(20_000))
  await rig.run(() => client.frames.length === id)
  const writes = write.mock.calls.map(({ arguments: [bytes] }) => bytes.length)
  mock.restoreAll()
  return { writes, ticks: soon.mock.callCount() }
}

test('produce: what passes unopened is written as if nobody looked', async () => {
  const started = await produceRig()
  started.policy.opens = () => false
  const looked = await cost(started)
  const rig = await Rig.start({ broker: new LogBroker().serve })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  const plain = await cost({ rig, client })
  assert.ok(plain.writes.length > 30, `${plain.writes.length} writes`)
  assert.deepEqual(looked, plain)
})
