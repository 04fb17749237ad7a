/**
 * The control of every later order test: without Headgate, a topic grown from 3 to 6 partitions under load breaks the
 * order of keys, and the history checker must show it. Directly on a real broker, with real clients.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { canRunKafka } from '../../../scripts/kafka/artifacts.ts'
import { prepareFamily } from '../../../scripts/setup/families.ts'
import type { Program } from '../../../scripts/setup/toolchain.ts'
import { check, rulesNamed } from '../../checker/checker.ts'
import { type SharedKafka, sharedKafka } from '../../kafka/shared.ts'
import { ClientProgram, type Run } from '../client.ts'
import { historyOf } from '../faults/history.ts'

/** Records before the growth: at 20 ms each more than one member works off before the next one comes, on a loaded machine too. */
const backlog = 800
const workMs = 20
const later = 300
const family = 'kafkajs'

const prepared = await prepareFamily(family)
const missing = 'install' in prepared ? prepared.install : canRunKafka() ? '' : 'apt-get install openjdk-17-jdk maven'

describe('control: a topic grown 3 → 6 without Headgate', {
  skip: missing === '' ? false : `needs: ${missing}`,
}, () => {
  let kafka: SharedKafka
  before(async () => {
    kafka = await sharedKafka()
  })
  after(() => kafka?.stop())

  test('keys are processed out of order, and the checker shows it', { timeout: 300_000 }, async () => {
    const topic = `control.${process.pid}`
    const { bootstrap } = kafka
    const program = new ClientProgram(family, prepared as Program)
    try {
      const admin = (op: string, partitions: number) => program.run({ cmd: 'admin', op, bootstrap, topic, partitions })
      const common = { bootstrap, topic, keys: 40, rate: 1000, producer: 'P', sent: true }
      const member = (name: string): Run =>
        program.start({
          cmd: 'consume',
          bootstrap,
          topics: [topic],
          group: topic,
          member: name,
          commit: 'batch',
          workMs,
        })

      await admin('createTopic', 3)
      const before = program.start({ cmd: 'produce', ...common, count: backlog })
      await before.ended()
      const a = member('A')
      await a.until('a first record', (events) => events.some(({ event }) => event === 'delivered'))
      await admin('addPartitions', 6)
      const behind = program.start({ cmd: 'produce', ...common, start: backlog, count: later })
      await behind.ended()
      const b = member('B')
      await b.until('a record of after the growth', (events) => events.some(isOf(backlog)))
      // Only with the earlier records given too, later than those, has order been broken.
      await a.until(
        'all of before the growth',
        () => delivered(a, b).filter((sequence) => sequence < backlog).length === backlog,
      )
      await Promise.all([a.stop(), b.stop()])

      const producer = { producer: 'P', idempotent: true, ordered: true } as const
      const group = { group: topic, isolation: 'read_uncommitted' }
      const { violations } = check(
        historyOf(
          [
            { run: before, who: producer },
            { run: behind, who: producer },
            { run: a, who: { member: 'A', ...group } },
            { run: b, who: { member: 'B', ...group } },
          ],
          [],
        ),
        { rules: rulesNamed(['key-order']) },
      )
      assert.ok(violations.length > 0, 'the checker saw no key out of order')
    } finally {
      await program.kill()
    }
  })
})

/** A record sent after the growth. */
function isOf(first: number): (event: { event: string; sequence?: unknown }) => boolean {
  return ({ event, sequence }) => event === 'delivered' && typeof sequence === 'number' && sequence >= first
}

/** The records that members were given, each once. */
function delivered(...runs: Run[]): number[] {
  const given = runs.flatMap((run) => run.events.filter(({ event }) => event === 'delivered'))
  return [...new Set(given.map((event) => Number(event['sequence'])))]
}
