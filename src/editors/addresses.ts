/** What editors need to know of broker addresses; the listeners answer it. */
import type { Connection, Target } from '../pipeline/connection.ts'

export interface KnownBroker {
  readonly nodeId: number
  readonly host: string
  readonly port: number
}

export interface BrokerAddresses {
  /** The address of a broker as this client is to see it; undefined: it cannot be given one (no port for its id). */
  advertised(connection: Connection, nodeId: number): Target | undefined
  /**
   * An answer named these brokers. A promise where ports must be bound before clients may see the answer; it rejects
   * if that fails.
   */
  learn(brokers: readonly KnownBroker[]): Promise<void> | undefined
}
