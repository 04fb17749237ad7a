/**
 * Where members began to read partitions of which their group had nothing committed. A group that starts at the end of an
 * idle partition commits nothing there, so nothing would ever tell that it has passed a boundary.
 *
 * A Fetch offset is a start position only if nothing can have been read before it: the coordinator said that there is no
 * commit, and it is the member's first Fetch of the partition since it joined owning nothing (or since it got the
 * partition, where it kept others). Fetches are watched for that long after each join; what could have passed unseen does
 * not count.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodeSubscription } from '../../../protocol/embedded.ts'
import type { JoinGroupRequest } from '../../../protocol/generated/11-join-group.ts'
import type { Membership } from '../../../pipeline/instance.ts'

/** How long after a new generation Fetches are watched. */
const WATCH_MS = 30_000

interface Life {
  generation: number
  atMs: number
  /** `topic/partition`: no commit, said the coordinator. */
  readonly none: Set<string>
  /** Fetched before, or it may have been. */
  readonly seen: Set<string>
  readonly starts: Map<string, number>
}

export class StartPositions {
  private readonly lives = new WeakMap<Membership, Life>()

  joined(membership: Membership, { protocolType, protocols }: JoinGroupRequest, nowMs: number): void {
    if (protocolType !== 'consumer') return
    const owned = protocols.flatMap(({ metadata }) => ownedIn(metadata))
    const life = this.lives.get(membership)
    if (owned.length === 0 || life === undefined) this.lives.set(membership, newLife(owned, membership, nowMs))
    else {
      for (const name of owned) life.seen.add(name)
      life.none.clear()
      life.atMs = nowMs
    }
  }

  /** KIP-848: a member joins with epoch 0 and owns nothing then. */
  began(membership: Membership, nowMs: number): void {
    this.lives.set(membership, newLife([], membership, nowMs))
  }

  /** Whether the member joined lately, so that its Fetches have to be watched. */
  isStarting(membership: Membership, nowMs: number): boolean {
    const life = this.lives.get(membership)
    if (life === undefined) return false
    if (life.generation !== membership.generation) {
      life.generation = membership.generation
      life.atMs = nowMs
    }
    return nowMs - life.atMs < WATCH_MS
  }

  /** The coordinator answered the member that its group has no commit for this partition. */
  none(membership: Membership, topic: string, partition: number): void {
    this.lives.get(membership)?.none.add(`${topic}/${partition}`)
  }

  fetched(membership: Membership, topic: string, partition: number, offset: number): void {
    const life = this.lives.get(membership)
    const name = `${topic}/${partition}`
    if (life === undefined || life.seen.has(name)) return
    life.seen.add(name)
    if (life.none.has(name)) life.starts.set(name, offset)
  }

  of(membership: Membership, topic: string, partition: number): number | undefined {
    return this.lives.get(membership)?.starts.get(`${topic}/${partition}`)
  }
}

function newLife(owned: readonly string[], { generation }: Membership, atMs: number): Life {
  return { generation, atMs, none: new Set(), seen: new Set(owned), starts: new Map() }
}

function ownedIn(metadata: Buffer): string[] {
  try {
    return decodeSubscription(metadata).value.ownedPartitions.flatMap(({ topic, partitions }) =>
      partitions.map((partition) => `${topic}/${partition}`),
    )
  } catch (error) {
    if (error instanceof ProtocolError) return []
    throw error
  }
}
