/** The client programs of a suite, prepared before its tests are named, and why those are skipped where something is missing. */
import { canRunKafka } from '../../scripts/kafka/artifacts.ts'
import { type FamilyName, prepareFamily } from '../../scripts/setup/families.ts'
import { ClientProgram } from './client.ts'

export interface Programs {
  /** Families that can run on this machine, in the order given. */
  readonly here: readonly FamilyName[]
  /** Why tests that need a broker and these families cannot run; false: they can. */
  readonly skipWithout: (needed: readonly FamilyName[]) => string | false
  /** Throws for a family that cannot run here. */
  readonly start: (family: FamilyName) => ClientProgram
}

export async function preparePrograms(families: readonly FamilyName[]): Promise<Programs> {
  const wanted = [...new Set(families)]
  const prepared = new Map(
    await Promise.all(wanted.map(async (family) => [family, await prepareFamily(family)] as const)),
  )
  const installOf = (family: FamilyName): string | undefined => {
    const program = prepared.get(family)
    return program !== undefined && 'install' in program ? program.install : undefined
  }
  return {
    here: wanted.filter((family) => installOf(family) === undefined),
    skipWithout(needed) {
      const install = canRunKafka() ? needed.map(installOf).find((line) => line !== undefined) : kafkaNeeds
      return install === undefined ? false : `needs: ${install}`
    },
    start(family) {
      const program = prepared.get(family)
      if (program === undefined || 'install' in program) throw new Error(`${family} is missing`)
      return new ClientProgram(family, program)
    },
  }
}

const kafkaNeeds = 'apt-get install openjdk-17-jdk maven'
