/** Starts Apache Kafka for trying things out: `tsx scripts/kafka.ts [--nodes 3]`; runs until Ctrl-C. */
import { parseArgs } from 'node:util'
import { startKafka } from './kafka/cluster.ts'

const { values } = parseArgs({ strict: false, options: { nodes: { type: 'string', default: '1' } } })
const nodes = Number(values.nodes)
if (
  process.argv.length > 2 &&
  !(nodes >= 1 && nodes <= 9 && values.nodes !== undefined && Object.keys(values).length === 1)
) {
  console.error('Usage: npm run kafka -- [--nodes N]     N from 1 to 9')
  process.exit(2)
}
const say = (line: string) => console.error(line)
const started = Date.now()
const kafka = await startKafka({ nodes, say })
say(
  `ready after ${((Date.now() - started) / 1000).toFixed(1)} s; logs: ${kafka.nodes.map((node) => node.log).join(' ')}`,
)
console.log(`bootstrap ${kafka.bootstrap}`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    say('stopping')
    void kafka.stop().then(() => process.exit(0))
  })
}
