/**
 * What members subscribe to, as they joined: a client that was seen in several groups (several consumers that cannot be
 * told apart) is gated by those only that may read the topic, or it would wait for a group that never commits there.
 *
 * Only ever widened: what was not seen, and what is subscribed to by a pattern that the broker resolves, may be anything.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodeSubscription } from '../../../protocol/embedded.ts'
import type { JoinGroupRequest } from '../../../protocol/generated/11-join-group.ts'
import type { ConsumerGroupHeartbeatRequest } from '../../../protocol/generated/68-consumer-group-heartbeat.ts'
import type { Membership } from '../../../pipeline/instance.ts'

export class Subscriptions {
  private readonly topics = new WeakMap<Membership, Set<string> | 'any'>()

  /** Whether this member may be given partitions of the topic. */
  mayRead(membership: Membership, topic: string): boolean {
    const topics = this.topics.get(membership)
    return topics === undefined || topics === 'any' || topics.has(topic)
  }

  /** @returns what it asks for now */
  joined(membership: Membership, { protocolType, protocols }: JoinGroupRequest): readonly string[] | 'any' {
    // other protocol types hand out something else than partitions
    const asked = protocolType === 'consumer' ? protocols.map(({ metadata }) => topicsIn(metadata)) : []
    const topics = asked.includes('any') ? 'any' : asked.flat().filter((name) => name !== 'any')
    this.widen(membership, topics)
    return topics
  }

  /** KIP-848: null means as before. */
  beat(membership: Membership, request: ConsumerGroupHeartbeatRequest): void {
    const { subscribedTopicNames, subscribedTopicRegex } = request
    if (subscribedTopicRegex !== null && subscribedTopicRegex !== '') this.widen(membership, 'any')
    else if (subscribedTopicNames !== null) this.widen(membership, subscribedTopicNames)
  }

  private widen(membership: Membership, topics: readonly string[] | 'any'): void {
    const known = this.topics.get(membership)
    if (known === 'any') return
    this.topics.set(membership, topics === 'any' ? 'any' : new Set([...(known ?? []), ...topics]))
  }
}

function topicsIn(metadata: Buffer): readonly string[] | 'any' {
  try {
    return decodeSubscription(metadata).value.topics
  } catch (error) {
    if (error instanceof ProtocolError) return 'any'
    throw error
  }
}
