/** The client families that the tests run, by name. */
import { MissingToolError } from '../kafka/artifacts.ts'
import {
  goProgram,
  javaProgram,
  kafkajsProgram,
  node22Program,
  type Program,
  pythonProgram,
  type Say,
} from './toolchain.ts'

const programs = {
  java: (say: Say) => javaProgram('4.3.1', say),
  'java-2.8': (say: Say) => javaProgram('2.8.2', say),
  kafkajs: () => kafkajsProgram(),
  platformatic: (say: Say) => node22Program(say),
  librdkafka: (say: Say) => pythonProgram('librdkafka.py', say),
  'franz-go': (say: Say) => goProgram('franz', say),
  sarama: (say: Say) => goProgram('sarama', say),
  aiokafka: (say: Say) => pythonProgram('aio.py', say),
  'kafka-python': (say: Say) => pythonProgram('kafkapython.py', say),
} as const

export type FamilyName = keyof typeof programs

export const familyNames = Object.keys(programs) as FamilyName[]

/** A family's toolchain is missing: what to type to get it. */
export interface MissingFamily {
  readonly family: FamilyName
  readonly install: string
}

/** A family's program, built first if need be, or what is missing for it. */
export async function prepareFamily(family: FamilyName, say: Say = () => {}): Promise<Program | MissingFamily> {
  try {
    return await programs[family](say)
  } catch (error) {
    if (error instanceof MissingToolError) return { family, install: error.install }
    throw error
  }
}
