/** The checks of `npm test`, in order: cheap ones first. A new suite is one entry here. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export interface Suite {
  readonly name: string
  readonly command: readonly string[]
  /** Roughly how long it takes on two cores, in seconds; it is ended after five times that (at least 5 minutes). */
  readonly seconds: number
  /** Arguments that a full run adds. */
  readonly full?: readonly string[]
  /** Environment that a full run adds. */
  readonly fullEnv?: Readonly<Record<string, string>>
  /** Needs Apache Kafka: gets a running one in `KAFKA_BOOTSTRAP`. */
  readonly kafka?: boolean
}

const tsx = ['node', '--import', 'tsx']
const npm = (script: string) => ['npm', 'run', '-s', script]

/** The test files of a folder of test/, run by node:test: one after the other on any machine, as they may share a broker. */
function nodeTest(folder: string): string[] {
  const names = readdirSync(join(root, 'test', folder)).filter((name) => name.endsWith('.test.ts'))
  return [
    ...tsx,
    '--test',
    '--test-concurrency=1',
    '--test-reporter=spec',
    ...names.map((name) => join('test', folder, name)),
  ]
}

export const suites: readonly Suite[] = [
  { name: 'build', command: npm('build'), seconds: 15 },
  { name: 'format', command: npm('format:check'), seconds: 2 },
  { name: 'types', command: npm('typecheck'), seconds: 20 },
  { name: 'lint', command: npm('lint'), seconds: 60 },
  { name: 'generated code is current', command: [...tsx, 'scripts/codegen.ts', '--check'], seconds: 5 },
  { name: 'unit and property tests', command: npm('test:unit'), seconds: 90 },
  {
    name: 'simulation',
    command: [...tsx, 'scripts/simulate.ts', '--seeds', '2000'],
    seconds: 260,
    full: ['--seeds', '10000'],
  },
  {
    name: 'layout rules under faults',
    command: [...tsx, 'test/model/main.ts', '--seeds', '2000', '--from', '0'],
    seconds: 80,
  },
  { name: "definitions against Kafka's", command: npm('protocol:check'), seconds: 10 },
  { name: "codecs against Kafka's", command: npm('test:oracle'), seconds: 90 },
  { name: "record batches against Kafka's", command: npm('test:oracle:records'), seconds: 30 },
  { name: 'hostile bytes', command: [...npm('fuzz'), '--', '--runs', '10000'], seconds: 25 },
  { name: 'benchmarks start', command: nodeTest('bench'), seconds: 30 },
  { name: 'deployment examples', command: nodeTest('integration/deploy'), seconds: 90 },
  { name: 'the binary and the demo', command: nodeTest('integration/ops'), seconds: 60 },
  { name: 'command-line tools', command: nodeTest('integration/tools'), seconds: 30, kafka: true },
  { name: 'broker model against Kafka', command: nodeTest('integration/model'), seconds: 30, kafka: true },
  { name: 'state log and fleet', command: nodeTest('integration/state'), seconds: 60, kafka: true },
  { name: 'gates of consumer groups', command: nodeTest('integration/gates'), seconds: 25, kafka: true },
  { name: 'hostile clients and upstreams', command: nodeTest('integration/hostile'), seconds: 70 },
  { name: 'brokers that come and go, draining', command: nodeTest('integration/addresses'), seconds: 25 },
  { name: 'client instances', command: nodeTest('integration/instances'), seconds: 15 },
  {
    name: 'client matrix and crosses',
    command: nodeTest('integration/matrix'),
    seconds: 200,
    kafka: true,
    fullEnv: { TEST_FULL: '1' },
  },
  {
    name: 'static key ranges',
    command: nodeTest('integration/ranges'),
    seconds: 140,
    kafka: true,
    fullEnv: { TEST_FULL: '1' },
  },
  { name: 'control: order lost without Headgate', command: nodeTest('integration/control'), seconds: 20, kafka: true },
  {
    name: 'topics that change their partition count',
    command: nodeTest('integration/layouts'),
    seconds: 430,
    kafka: true,
    fullEnv: { TEST_FULL: '1' },
  },
  {
    name: 'applications, proxy and broker die',
    command: nodeTest('integration/faults'),
    seconds: 50,
    fullEnv: { TEST_FULL: '1' },
  },
]
