/** Apache Kafka's command-line tools print the same directly and through the proxy. `TEST_DIRECT_ONLY=1`: to check the tests. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { canRunKafka } from '../../../scripts/kafka/artifacts.ts'
import { findJavac } from '../../../scripts/kafka/java.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { type ToolResult, Tools } from './tools.ts'

const skip = canRunKafka() && findJavac() !== undefined ? false : 'needs: apt-get install openjdk-17-jdk maven'
const tool = 'org.apache.kafka.tools'
const groupTool = `${tool}.consumer.group.ConsumerGroupCommand`
const shareTool = `${tool}.consumer.group.ShareGroupCommand`
const configTool = 'kafka.admin.ConfigCommand'

let kafka: SharedKafka
let proxy: Proxy | undefined
let tools: Tools

interface Step {
  readonly main: string
  readonly args: readonly string[]
  readonly input?: string
  /** What it must print (after names and addresses are made equal). */
  readonly prints?: RegExp
  readonly status?: number
  /** Its output has times in it: only what `prints` finds is compared. */
  readonly timed?: boolean
  /** It shows what an earlier step did, which brokers do a moment after they have acknowledged it: asked until it `prints` it. */
  readonly settles?: boolean
  /** It prints its results when its Java machine ends. */
  readonly alone?: boolean
}

describe('command-line tools', { skip }, () => {
  before(async () => {
    kafka = await sharedKafka()
    if (process.env['TEST_DIRECT_ONLY'] !== '1') proxy = await startProxy(kafka.bootstrap)
    tools = await Tools.start()
  })
  after(async () => {
    tools?.close()
    await proxy?.stop()
    await kafka.stop()
  })

  test('kafka-topics', () => same(topics()))
  test('kafka-configs', () => same(configs()))
  test('kafka-producer-perf-test, kafka-consumer-perf-test', () => same(performance()))
  test('kafka-verifiable-producer, kafka-verifiable-consumer, kafka-consumer-groups', () => same(verifiable()))
  test('kafka-console-producer, kafka-console-consumer', () => same(consoles()))
  test('kafka-console-share-consumer, kafka-share-groups', () => same(shareGroups()))
  test('kafka-metadata-quorum, kafka-features, kafka-broker-api-versions', () => same(cluster()))
})

/** Runs the steps on both ways (`TOPIC`, `GROUP` stand for names of their own) and compares what they print. */
async function same(steps: readonly Step[]): Promise<void> {
  const ways = [{ name: 'direct', bootstrap: kafka.bootstrap }]
  if (proxy !== undefined) ways.push({ name: 'proxied', bootstrap: proxy.bootstrap })
  for (const [index, step] of steps.entries()) {
    const results: ToolResult[] = []
    for (const { name, bootstrap } of ways) {
      const own = `${name}.${process.pid}`
      const args = step.args.map((text) =>
        text.replace('BOOTSTRAP', bootstrap).replace('TOPIC', `topic.${own}`).replace('GROUP', `group.${own}`),
      )
      const alone = step.alone === true
      const ask = () => (alone ? tools.runAlone(step.main, args) : tools.run(step.main, args, step.input))
      const named = (text: string) => text.replaceAll(`topic.${own}`, 'TOPIC').replaceAll(`group.${own}`, 'GROUP')
      const shows = ({ status, output }: ToolResult) => status === 0 && step.prints?.test(named(output)) !== false
      let answer = await ask()
      for (let attempt = 0; step.settles === true && !shows(answer) && attempt < 100; attempt++) {
        await delay(100)
        answer = await ask()
      }
      const { status, output } = answer
      const plain = named(output)
      const context = `step ${index + 1}, ${name}: ${step.main} ${args.join(' ')}\n${output}`
      assert.equal(status, step.status ?? 0, context)
      if (step.prints !== undefined) assert.match(plain, step.prints, context)
      results.push({ status, output: normal(step.timed === true ? (step.prints?.exec(plain)?.[0] ?? '') : plain) })
    }
    const [direct, proxied] = results
    if (proxied !== undefined)
      assert.deepEqual(proxied, direct, `step ${index + 1}: ${step.main} ${step.args.join(' ')}`)
  }
}

/** Output without what differs by nature: addresses, ids made at random, times, the padding that depends on widths. */
function normal(output: string): string {
  return (
    output
      .replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS')
      .replaceAll(/TopicId: \S+/g, 'TopicId: ID')
      // The metadata log grows by itself, twice a second.
      .replaceAll(/(HighWatermark|MaxFollowerLag\w*):\s+\d+/g, '$1: N')
      .replaceAll(/[\w.-]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'MEMBER')
      .replaceAll(/[ \t]+/g, ' ')
      .trim()
  )
}

const connect = ['--bootstrap-server', 'BOOTSTRAP']

function topics(): Step[] {
  const main = `${tool}.TopicCommand`
  const create = { main, args: [...connect, '--create', '--topic', 'TOPIC.t', '--partitions', '3'] }
  return [
    { ...create, prints: /Created topic/ },
    { ...create, status: 1, prints: /already exists/, timed: true },
    { main, args: [...connect, '--list'], prints: /TOPIC\.t$/m, timed: true, settles: true },
    { main, args: [...connect, '--describe', '--topic', 'TOPIC.t'], prints: /PartitionCount: 3/, settles: true },
    { main, args: [...connect, '--alter', '--topic', 'TOPIC.t', '--partitions', '4'] },
    { main, args: [...connect, '--describe', '--topic', 'TOPIC.t'], prints: /PartitionCount: 4/, settles: true },
    { main: `${tool}.GetOffsetShell`, args: [...connect, '--topic', 'TOPIC.t'], prints: /TOPIC\.t:3:0/, settles: true },
    { main, args: [...connect, '--delete', '--topic', 'TOPIC.t'] },
  ]
}

function configs(): Step[] {
  const entity = [...connect, '--entity-type', 'topics', '--entity-name', 'TOPIC.c']
  return [
    { main: `${tool}.TopicCommand`, args: [...connect, '--create', '--topic', 'TOPIC.c'] },
    { main: configTool, args: [...entity, '--alter', '--add-config', 'retention.ms=3600000'], prints: /Completed/ },
    { main: configTool, args: [...entity, '--describe'], prints: /retention\.ms=3600000/, settles: true },
    {
      main: configTool,
      args: [...entity, '--alter', '--add-config', 'retention.ms=never'],
      status: 1,
      prints: /retention.ms/,
      timed: true,
    },
    {
      main: configTool,
      args: [...connect, '--entity-type', 'brokers', '--describe', '--all'],
      prints: /node\.id=1/,
      timed: true,
    },
  ]
}

function performance(): Step[] {
  const records = ['--num-records', '5000']
  return [
    { main: `${tool}.TopicCommand`, args: [...connect, '--create', '--topic', 'TOPIC.p', '--partitions', '2'] },
    {
      main: `${tool}.ProducerPerformance`,
      args: [...connect, '--topic', 'TOPIC.p', ...records, '--record-size', '100', '--throughput', '-1'],
      prints: /5000 records sent/,
      timed: true,
    },
    {
      main: `${tool}.ConsumerPerformance`,
      args: [...connect, '--topic', 'TOPIC.p', ...records, '--group', 'GROUP.p'],
      prints: /, 5000, /,
      timed: true,
    },
  ]
}

function verifiable(): Step[] {
  const group = ['--group', 'GROUP.v']
  return [
    { main: `${tool}.TopicCommand`, args: [...connect, '--create', '--topic', 'TOPIC.v', '--partitions', '1'] },
    {
      main: `${tool}.VerifiableProducer`,
      args: [...connect, '--topic', 'TOPIC.v', '--max-messages', '300'],
      prints: /"sent":300,"acked":300/,
      timed: true,
      alone: true,
    },
    {
      main: `${tool}.VerifiableConsumer`,
      args: [
        ...connect,
        '--topic',
        'TOPIC.v',
        '--group-id',
        'GROUP.v',
        '--max-messages',
        '300',
        '--reset-policy',
        'earliest',
      ],
      prints: /"count":300/,
      timed: true,
    },
    { main: groupTool, args: [...connect, '--list'], prints: /GROUP\.v$/m, timed: true, settles: true },
    { main: groupTool, args: [...connect, '--describe', ...group], prints: /TOPIC\.v +0 +300 +300 +0/, settles: true },
    { main: groupTool, args: [...connect, '--describe', '--state', ...group], prints: /Empty/, settles: true },
    {
      main: groupTool,
      args: [...connect, ...group, '--reset-offsets', '--to-earliest', '--topic', 'TOPIC.v', '--execute'],
      prints: /TOPIC\.v +0 +0/,
    },
    { main: groupTool, args: [...connect, '--describe', ...group], prints: /TOPIC\.v +0 +0 +300 +300/, settles: true },
    { main: groupTool, args: [...connect, '--delete', ...group], prints: /successful/ },
  ]
}

function consoles(): Step[] {
  return [
    { main: `${tool}.TopicCommand`, args: [...connect, '--create', '--topic', 'TOPIC.k'] },
    {
      main: `${tool}.ConsoleProducer`,
      args: [...connect, '--topic', 'TOPIC.k', '--property', 'parse.key=true', '--property', 'key.separator=:'],
      input: 'a:one\nb:two\nä:drei\n',
      timed: true,
    },
    {
      main: `${tool}.consumer.ConsoleConsumer`,
      args: [
        ...connect,
        '--topic',
        'TOPIC.k',
        '--from-beginning',
        '--max-messages',
        '3',
        '--property',
        'print.key=true',
      ],
      prints: /a\tone\nb\ttwo\nä\tdrei\n/,
      timed: true,
    },
  ]
}

function shareGroups(): Step[] {
  const entity = ['--entity-type', 'groups', '--entity-name', 'GROUP.s']
  return [
    { main: `${tool}.TopicCommand`, args: [...connect, '--create', '--topic', 'TOPIC.s'] },
    { main: configTool, args: [...connect, ...entity, '--alter', '--add-config', 'share.auto.offset.reset=earliest'] },
    { main: `${tool}.ConsoleProducer`, args: [...connect, '--topic', 'TOPIC.s'], input: 'one\ntwo\n', timed: true },
    {
      main: `${tool}.consumer.ConsoleShareConsumer`,
      args: [...connect, '--topic', 'TOPIC.s', '--group', 'GROUP.s', '--max-messages', '2'],
      prints: /one\ntwo\n/,
      timed: true,
    },
    { main: shareTool, args: [...connect, '--list'], prints: /GROUP\.s/, timed: true, settles: true },
    { main: shareTool, args: [...connect, '--describe', '--group', 'GROUP.s'], prints: /TOPIC\.s/ },
  ]
}

function cluster(): Step[] {
  const quorum = `${tool}.MetadataQuorumCommand`
  return [
    {
      main: quorum,
      args: [...connect, 'describe', '--status'],
      prints: /LeaderId: +1[^]*CurrentVoters: .*"id": 1/,
      timed: true,
    },
    { main: quorum, args: [...connect, 'describe', '--replication'], prints: /Leader\s*$/m, timed: true },
    { main: `${tool}.FeatureCommand`, args: [...connect, 'describe'], prints: /metadata\.version/ },
    { main: `${tool}.BrokerApiVersionsCommand`, args: connect, prints: /\(id: 1 rack: null/, timed: true },
    { main: `${tool}.TransactionsCommand`, args: [...connect, 'list'], prints: /TransactionalId/, timed: true },
  ]
}
