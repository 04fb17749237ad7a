/** The assignors of the families, and the formats that travel inside group messages. */
import { consumerProtocolAssignment } from '../../../src/protocol/generated/data-consumer-protocol-assignment.ts'
import { consumerProtocolSubscription } from '../../../src/protocol/generated/data-consumer-protocol-subscription.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'
import type { ConsumerFamily } from './families.ts'

export interface Subscriber {
  memberId: string
  owned: number[]
}

/** Member id → partitions. One topic, subscribed by all. */
export function assign(
  assignor: ConsumerFamily['assignor'],
  members: Subscriber[],
  count: number,
): Map<string, number[]> {
  const sorted = Array.from(members).sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  const plan = new Map<string, number[]>(sorted.map(({ memberId }) => [memberId, []]))
  const partitions = Array.from({ length: count }, (_, i) => i)
  if (assignor === 'roundrobin') {
    for (const p of partitions) plan.get(sorted[p % sorted.length]?.memberId ?? '')?.push(p)
    return plan
  }
  if (assignor === 'range') {
    for (const p of partitions) plan.get(sorted[Math.floor((p * sorted.length) / count)]?.memberId ?? '')?.push(p)
    return plan
  }
  return assignSticky(sorted, plan, partitions)
}

/** One topic's worth of cooperative-sticky: keeps what is owned up to the fair share; what somebody else still owns goes to nobody in this generation. */
function assignSticky(members: Subscriber[], plan: Map<string, number[]>, partitions: number[]): Map<string, number[]> {
  const fair = Math.ceil(partitions.length / members.length)
  const owners = new Map<number, string[]>()
  for (const { memberId, owned } of members) {
    for (const p of owned) owners.set(p, [...(owners.get(p) ?? []), memberId])
  }
  const free: number[] = []
  for (const p of partitions) {
    const [owner, ...others] = owners.get(p) ?? []
    const share = plan.get(owner ?? '')
    if (owner === undefined || others.length > 0) free.push(p)
    else if (share !== undefined && share.length < fair) {
      share.push(p)
    }
  }
  for (const p of free) {
    const least = Array.from(plan).sort((a, b) => a[1].length - b[1].length)[0]
    least?.[1].push(p)
  }
  return plan
}

export function encodeSubscription(topic: string, owned: number[]): Buffer {
  const version = 1
  const writer = new Writer()
  writer.int16(version)
  const ownedPartitions = owned.length === 0 ? [] : [{ topic, partitions: owned }]
  consumerProtocolSubscription.encode(writer, { topics: [topic], userData: null, ownedPartitions }, version)
  return writer.finish()
}

export function decodeOwned(metadata: Buffer): number[] {
  const reader = new Reader(metadata)
  const { ownedPartitions } = consumerProtocolSubscription.decode(reader, reader.int16())
  return ownedPartitions.flatMap(({ partitions }) => partitions)
}

export function encodeAssignment(topic: string, partitions: number[]): Buffer {
  const writer = new Writer()
  writer.int16(1)
  const assignedPartitions = partitions.length === 0 ? [] : [{ topic, partitions }]
  consumerProtocolAssignment.encode(writer, { assignedPartitions, userData: null }, 1)
  return writer.finish()
}

export function decodeAssignment(bytes: Buffer): number[] {
  if (bytes.length === 0) return []
  const reader = new Reader(bytes)
  const { assignedPartitions } = consumerProtocolAssignment.decode(reader, reader.int16())
  return assignedPartitions.flatMap(({ partitions }) => partitions)
}
