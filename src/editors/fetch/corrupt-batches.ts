/** Says once what is wrong with a batch: clients ask for it again and again. */
import type { Connection } from '../../pipeline/connection.ts'
import type { PartitionRead } from './partition-read.ts'

/** How many batches are remembered as reported. */
const REMEMBERED = 1000

export class CorruptBatches {
  private readonly reported = new Set<string>()

  report(connection: Connection, { failure, key, position }: PartitionRead): void {
    const batch = `${key}/${position}`
    if (failure === undefined || this.reported.has(batch)) return
    if (this.reported.size >= REMEMBERED) this.reported.clear()
    this.reported.add(batch)
    const [topic, partition] = key.split('/')
    connection.context.log.warn(
      { topic, partition: Number(partition), offset: position, code: failure.code, clientId: connection.clientId },
      `a batch cannot be read, its partition is answered with CORRUPT_MESSAGE (2): ${failure.message}`,
    )
  }
}
