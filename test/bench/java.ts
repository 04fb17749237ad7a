/** Kafka's own performance tools as clients: slower than the load generator, but real producers and consumers. */
import { run } from '../../scripts/setup/run.ts'
import { kafkaArtifacts } from '../../scripts/kafka/artifacts.ts'

const mebibyte = 2 ** 20

async function tool(name: string, args: readonly string[]): Promise<string> {
  const { java, classPath } = await kafkaArtifacts()
  return run(java, ['-Xms512m', '-Xmx512m', '-cp', classPath, `org.apache.kafka.tools.${name}`, ...args])
}

/** Reads `records` with one consumer; bytes a second between the first answer and the last. */
export async function javaConsume(port: number, topic: string, records: number): Promise<number> {
  const args = ['--bootstrap-server', `127.0.0.1:${port}`, '--topic', topic, '--num-records', String(records)]
  const output = await tool('ConsumerPerformance', [...args, '--timeout', '20000', '--hide-header'])
  // start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
  const fields = output.trim().split('\n').at(-1)?.split(',') ?? []
  if (!(Number(fields[4]) >= records))
    throw new Error(`the consumer read ${fields[4] ?? 'nothing'} of ${records}\n${output}`)
  return Number(fields[8]) * mebibyte
}

/** Writes `records` of 1 KiB with one producer, acks=1; bytes a second. */
export async function javaProduce(port: number, topic: string, records: number): Promise<number> {
  const args = ['--topic', topic, '--num-records', String(records), '--record-size', '1024', '--throughput', '-1']
  const settings = [`bootstrap.servers=127.0.0.1:${port}`, 'acks=1', 'batch.size=131072', 'linger.ms=5']
  const output = await tool('ProducerPerformance', [...args, '--command-property', ...settings])
  const rate = /records\/sec \(([\d.]+) MB\/sec\)/.exec(output.trim().split('\n').at(-1) ?? '')?.[1]
  if (rate === undefined) throw new Error(`the producer said nothing about its speed\n${output}`)
  return Number(rate) * mebibyte
}
