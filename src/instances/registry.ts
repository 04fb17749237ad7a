/**
 * Client instances: one entry per producer or consumer object in an application, recognised by the loopback address it
 * alone was given, else by source address and client id. Where two members cannot be told apart, the entry says so
 * (`ambiguous`): features that need one member stay off for it, nothing is guessed.
 */
import type { GroupPeek } from '../protocol/peek.ts'
import type { Instance, InstanceConnection, InstanceRegistry, Membership } from '../pipeline/instance.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { isToken, tokenAddress, tokenCount } from './token.ts'

export interface InstancesOptions {
  readonly runtime: Runtime
  /** Whether a listener gives each instance an address of its own. */
  readonly isLoopback: (listener: string) => boolean
}

/** A member that was the instance's one before another took its place. */
interface Entry extends Instance {
  readonly key: string
  /** The loopback address that stands for it, where the listener gives one. */
  readonly address: string | undefined
  readonly former: Map<string, Set<string>>
  readonly held: Set<InstanceConnection>
  goneAt: number
}

/** How long an instance without connections is remembered: clients drop idle connections after 9 to 10 minutes. */
const forgetAfterMs = 15 * 60_000
/** Groups of one instance, and lives of its member in one of them, that are remembered: those used last. */
const groupsMax = 1000
const formerMax = 64
/** How often those that are gone are looked for, at most: a walk over all of them. */
const forgetEveryMs = 10_000

export class Instances implements InstanceRegistry {
  private readonly options: InstancesOptions
  private readonly entries = new Map<string, Entry>()
  private sequence = 0
  private forgetAt = 0

  constructor(options: InstancesOptions) {
    this.options = options
  }

  /** Every instance that has a connection or had one lately. */
  all(): readonly Instance[] {
    this.forgetGone()
    return [...new Set(this.entries.values())]
  }

  /** The loopback address that clients of this connection are shown; undefined on other listeners. */
  addressOf(connection: InstanceConnection): string | undefined {
    return (connection.instance as Entry | undefined)?.address
  }

  opened(connection: InstanceConnection): Instance | undefined {
    if (!this.options.isLoopback(connection.listener)) return undefined
    // A token is adopted even if it is unknown: the process may have been restarted since it was given out.
    const address = isToken(connection.localAddress) ? connection.localAddress : this.freshAddress(connection.listener)
    const entry = this.find(`${connection.listener}|${address}`, connection, address)
    hold(entry, connection)
    return entry
  }

  named(connection: InstanceConnection, clientId: string | null): Instance {
    const known = connection.instance as Entry | undefined
    if (known !== undefined) {
      known.clientId ??= clientId
      return known
    }
    const key = `${connection.listener}|${connection.remoteAddress}|${clientId ?? ''}`
    const entry = this.find(key, connection, undefined)
    entry.clientId = clientId
    hold(entry, connection)
    return entry
  }

  closed(connection: InstanceConnection): void {
    const entry = connection.instance as Entry | undefined
    if (entry === undefined) return
    entry.held.delete(connection)
    entry.connections = entry.held.size
    if (entry.connections > 0) return
    entry.goneAt = this.options.runtime.now()
    // A probe that only connected leaves nothing behind.
    if (entry.clientId === null && entry.memberships.size === 0) this.entries.delete(entry.key)
  }

  /** A group request named its member. */
  bound(connection: InstanceConnection, peek: GroupPeek): void {
    if (connection.instance === undefined) return
    if (peek.memberId !== '') this.merge(connection, peek)
    const entry = connection.instance as Entry
    const membership = this.membership(entry, peek.groupId)
    membership.groupInstanceId = peek.instanceId ?? membership.groupInstanceId
    if (peek.memberId !== '' && peek.memberId !== membership.memberId) this.takeOver(entry, membership, peek)
    if (peek.generation >= 0) membership.generation = peek.generation
  }

  /** A commit without membership (assign, or a tool): the group is known, no member is. */
  committed(connection: InstanceConnection, groupId: string): void {
    if (connection.instance !== undefined) this.membership(connection.instance as Entry, groupId)
  }

  left(connection: InstanceConnection, groupId: string, memberId: string): void {
    const memberships = connection.instance?.memberships
    if (memberships?.get(groupId)?.memberId === memberId) memberships.delete(groupId)
  }

  private membership(entry: Entry, groupId: string): Membership {
    const { memberships, former } = entry
    const known = memberships.get(groupId)
    const membership = known ?? { groupId, memberId: '', generation: -1, groupInstanceId: null }
    memberships.delete(groupId)
    memberships.set(groupId, membership)
    if (memberships.size > groupsMax) {
      const [oldest = ''] = memberships.keys()
      memberships.delete(oldest)
      former.delete(oldest)
    }
    return membership
  }

  /** Another member id than before: a new life of the same member, or, if the old one comes back, two members. */
  private takeOver(entry: Entry, membership: Membership, peek: GroupPeek): void {
    let former = entry.former.get(peek.groupId)
    if (former === undefined) entry.former.set(peek.groupId, (former = new Set()))
    if (former.has(peek.memberId)) entry.ambiguous = true
    if (membership.memberId !== '') former.add(membership.memberId)
    if (former.size > formerMax) for (const oldest of former) if (former.delete(oldest)) break
    membership.memberId = peek.memberId
    membership.generation = peek.generation
  }

  /** The same member id on two addresses of one listener: the client bootstrapped twice and is one instance. */
  private merge(connection: InstanceConnection, peek: GroupPeek): void {
    const mine = connection.instance as Entry
    if (mine.address === undefined || mine.memberships.get(peek.groupId)?.memberId === peek.memberId) return
    for (const other of this.entries.values()) {
      if (other === mine || other.address === undefined || other.source !== mine.source) continue
      if (other.memberships.get(peek.groupId)?.memberId !== peek.memberId) continue
      for (const each of mine.held) {
        each.instance = other
        hold(other, each)
      }
      for (const [groupId, membership] of mine.memberships)
        if (!other.memberships.has(groupId)) other.memberships.set(groupId, membership)
      other.ambiguous ||= mine.ambiguous
      for (const [key, entry] of this.entries) if (entry === mine) this.entries.set(key, other)
      return
    }
  }

  private find(key: string, connection: InstanceConnection, address: string | undefined): Entry {
    let entry = this.entries.get(key)
    if (entry === undefined) {
      if (this.options.runtime.now() >= this.forgetAt) this.forgetGone()
      entry = {
        id: `${++this.sequence}`,
        key,
        address,
        recognisedBy: address === undefined ? 'source' : 'address',
        source: connection.remoteAddress,
        clientId: null,
        softwareName: '',
        softwareVersion: '',
        memberships: new Map(),
        former: new Map(),
        ambiguous: false,
        connections: 0,
        held: new Set(),
        goneAt: 0,
      }
      this.entries.set(key, entry)
    }
    return entry
  }

  private freshAddress(listener: string): string {
    for (;;) {
      const address = tokenAddress(this.options.runtime.random(tokenCount))
      if (!this.entries.has(`${listener}|${address}`)) return address
    }
  }

  private forgetGone(): void {
    const now = this.options.runtime.now()
    this.forgetAt = now + forgetEveryMs
    for (const [key, entry] of this.entries)
      if (entry.connections === 0 && entry.goneAt < now - forgetAfterMs) this.entries.delete(key)
  }
}

function hold(entry: Entry, connection: InstanceConnection): void {
  entry.held.add(connection)
  entry.connections = entry.held.size
}
