/** What each client family has, and so what the matrix asks of it. */
import type { FamilyName } from '../../../scripts/setup/families.ts'

export interface Abilities {
  readonly codecs: readonly string[]
  /** Assignors beside the client's default that full runs add. */
  readonly assignors: readonly string[]
  /** Groups of the new protocol (KIP-848). Not platformatic's: directly, too, a new member may stand still for ever. */
  readonly newGroups?: boolean
  /** Its consumer hides only the last of several aborted transactions of one producer in one Fetch answer. */
  readonly oneAbort?: boolean
  /** Admin calls that the client does not have. */
  readonly lacks?: readonly string[]
}

const all = ['none', 'gzip', 'snappy', 'lz4', 'zstd']

export const abilities: Record<FamilyName, Abilities> = {
  java: { codecs: all, assignors: ['range', 'cooperative'], newGroups: true },
  'java-2.8': { codecs: all, assignors: ['range', 'cooperative'] },
  kafkajs: { codecs: ['none', 'gzip'], assignors: [] },
  platformatic: { codecs: all, assignors: [], oneAbort: true },
  librdkafka: { codecs: all, assignors: ['range', 'cooperative'], newGroups: true },
  'franz-go': { codecs: all, assignors: ['range', 'cooperative'] },
  sarama: { codecs: all, assignors: ['range', 'cooperative'] },
  aiokafka: { codecs: all, assignors: ['range', 'cooperative'], lacks: ['deleteGroup'] },
  'kafka-python': { codecs: all, assignors: ['range', 'cooperative'] },
}
