/** What reading an answer that names brokers comes to. */
import type { KnownBroker } from '../addresses.ts'

/** A new answer, and the brokers it named. */
export interface Rewritten {
  readonly seen: readonly KnownBroker[]
  /** Made after the brokers were learned, when each of them has an address. */
  build(): Buffer
}
