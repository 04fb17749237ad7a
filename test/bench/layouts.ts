/**
 * The scenario `layouts`: what a topic costs whose partition count may change but does not, beside a proxy without any
 * such rule: bytes in both directions, and the latency of small Produce requests and of small Fetch answers.
 */
import { bulk, command, type Measures, named, requests, type Run, type Scenario } from './measure.ts'
import { batchesPerPartition, kafkaPartitions, kafkaTopics, produceCommand, recordsPerBatch } from './upstream.ts'

const small = { connections: 50, rate: 2000, partitions: kafkaPartitions }

/** The offsets of whole batches that every partition has. */
const batches = { step: 16 * recordsPerBatch, offsets: (batchesPerPartition - 16) * recordsPerBatch }
const consumed = { api: 'fetch', version: 12, topic: kafkaTopics.consume, partitions: kafkaPartitions, ...batches }

function only(measures: Measures, name: string): Measures {
  const value = measures[name]
  return value === undefined ? {} : { [name]: value }
}

async function measure(run: Run): Promise<Measures> {
  const produced = await bulk(run, produceCommand(run.programs, run.running.port, kafkaTopics.produce))
  const sent = { ...small, api: 'produce', version: 9, topic: kafkaTopics.small, records: 1, 'record-bytes': 100 }
  const produceTimes = await requests(run, command(run, sent))
  const read = await bulk(run, command(run, { ...consumed, size: 1 << 20, connections: 4, inflight: 2 }))
  const fetchTimes = await requests(
    run,
    command(run, { ...consumed, ...small, size: 70_000, connections: 10, rate: 500 }),
  )
  return {
    ...named('produce', { ...only(produced, 'cpuSecondsPerGb'), ...only(produceTimes, 'p99Ms') }),
    ...named('consume', { ...only(read, 'cpuSecondsPerGb'), ...only(fetchTimes, 'p99Ms') }),
  }
}

export const layouts: Scenario = {
  name: 'layouts',
  title: 'topics that may change their partition count, at rest: Produce and Fetch of 1 KiB records, Kafka',
  upstream: 'kafka',
  targets: ['headgate', 'layouts'],
  measure,
}
