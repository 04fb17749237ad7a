/** The checks of `npm test`, in order: cheap ones first. A new suite is one entry here. */

export interface Suite {
  readonly name: string
  readonly command: readonly string[]
  /** Roughly how long it takes on two cores, in seconds; it is ended after five times that (at least 2 minutes). */
  readonly seconds: number
  /** Arguments that a full run adds. */
  readonly full?: readonly string[]
  /** Environment that a full run adds. */
  readonly fullEnv?: Readonly<Record<string, string>>
  /** Needs Apache Kafka: gets a running one in `KAFKA_BOOTSTRAP`. */
  readonly kafka?: boolean
}

const tsx = ['node', '--import', 'tsx']
const nodeTest = [...tsx, '--test', '--test-reporter=spec']

export const suites: readonly Suite[] = [
  { name: 'build', command: ['npm', 'run', '-s', 'build'], seconds: 15 },
  { name: 'format', command: ['npm', 'run', '-s', 'format:check'], seconds: 2 },
  { name: 'types', command: ['npm', 'run', '-s', 'typecheck'], seconds: 15 },
  { name: 'lint', command: ['npm', 'run', '-s', 'lint'], seconds: 40 },
  { name: 'unit and property tests', command: ['npm', 'run', '-s', 'test:unit'], seconds: 60 },
  { name: "codecs against Kafka's own", command: [...tsx, 'test/oracle/run.ts'], seconds: 90 },
  {
    name: 'client matrix',
    command: [...nodeTest, 'test/integration/matrix/matrix.test.ts'],
    seconds: 150,
    kafka: true,
    fullEnv: { TEST_FULL: '1' },
  },
]
