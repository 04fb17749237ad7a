/** Who is calling: one producer or consumer object in an application, however many connections it opens. */

/** A group that an instance was seen to belong to. */
export interface Membership {
  readonly groupId: string
  /** Empty while the broker has not given one. */
  memberId: string
  /** Generation, or member epoch (KIP-848); −1 while unknown. */
  generation: number
  /** group.instance.id of a static member (KIP-345). */
  groupInstanceId: string | null
}

export interface Instance {
  /** Unique within this process. */
  readonly id: string
  /** How it was recognised: by the address it alone was given, or by source address and client id. */
  readonly recognisedBy: 'address' | 'source'
  /** Where it comes from (source address). */
  readonly source: string
  clientId: string | null
  /** From ApiVersions v3+ (KIP-511); empty where the client does not say. */
  softwareName: string
  softwareVersion: string
  /** By group id. */
  readonly memberships: Map<string, Membership>
  /** Two members were seen that cannot be told apart: features that need one member stay off for it. */
  ambiguous: boolean
  connections: number
}

/** Keeps instances; called by connections as they learn who is calling. */
export interface InstanceRegistry {
  /** A connection was accepted: the instance, if its address tells it already. */
  opened(connection: InstanceConnection): Instance | undefined
  /** The first request of a connection showed a client id. */
  named(connection: InstanceConnection, clientId: string | null): Instance
  closed(connection: InstanceConnection): void
}

/** What the registry needs to know of a connection. */
export interface InstanceConnection {
  readonly id: number
  readonly listener: string
  readonly remoteAddress: string
  readonly localAddress: string
  /** −1: the bootstrap address. */
  readonly nodeId: number
  instance: Instance | undefined
}
