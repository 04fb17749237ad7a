/**
 * Compares our definitions with those inside the artifacts of a Kafka release and says what differs:
 *   npm run protocol:check [-- --kafka 4.3.1]
 * Exits with 1 when anything does. docs/protocol.md says what to do with a new release.
 */
import { parseArgs } from 'node:util'
import { readDefinitions } from './codegen/definitions.ts'
import { kafkaVersion } from './kafka/artifacts.ts'
import { compareAll } from './protocol-check/compare.ts'
import { kafkaMessages } from './protocol-check/kafka.ts'

const { values } = parseArgs({ options: { kafka: { type: 'string', default: kafkaVersion } } })

const definitions = readDefinitions()
const messages = await kafkaMessages(values.kafka, (line) => console.log(line))
const problems = compareAll(definitions, messages)
for (const problem of problems) console.log(problem)
const count = definitions.reduce((sum, definition) => sum + definition.messages.length, 0)
console.log(`${count} messages compared with Apache Kafka ${values.kafka}, ${problems.length} differences`)
process.exitCode = problems.length === 0 ? 0 : 1
