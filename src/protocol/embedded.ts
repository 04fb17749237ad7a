/**
 * Formats inside the opaque bytes of JoinGroup and SyncGroup when the protocol type is `consumer`. An int16 version comes
 * first and newer versions only append: a version above ours is read as our newest, and the bytes behind the known
 * fields are kept, so that writing the value again loses nothing. Other protocol types (Kafka Connect, schema
 * registries) put their own formats there.
 */
import type { Draft, Format } from './codec.ts'
import { consumerProtocolAssignment } from './generated/data-consumer-protocol-assignment.ts'
import type { ConsumerProtocolAssignment } from './generated/data-consumer-protocol-assignment.ts'
import { consumerProtocolSubscription } from './generated/data-consumer-protocol-subscription.ts'
import type { ConsumerProtocolSubscription } from './generated/data-consumer-protocol-subscription.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

/** A value with its version on the wire and whatever followed the known fields. */
export interface Versioned<T> {
  readonly version: number
  readonly value: T
  /** Bytes behind the fields that this codec knows; empty as a rule. */
  readonly rest: Uint8Array
}

const noRest = Buffer.alloc(0)

/** Reads a member's metadata from JoinGroup. Throws ProtocolError. */
export function decodeSubscription(bytes: Buffer): Versioned<ConsumerProtocolSubscription> {
  return decodeVersioned(consumerProtocolSubscription, bytes)
}

export function encodeSubscription(subscription: VersionedDraft<ConsumerProtocolSubscription>): Buffer {
  return encodeVersioned(consumerProtocolSubscription, subscription)
}

/** Reads a member's assignment from SyncGroup; empty bytes mean that the member has none. Throws ProtocolError. */
export function decodeAssignment(bytes: Buffer): Versioned<ConsumerProtocolAssignment> {
  if (bytes.length === 0) return { version: 0, value: { assignedPartitions: [], userData: null }, rest: noRest }
  return decodeVersioned(consumerProtocolAssignment, bytes)
}

export function encodeAssignment(assignment: VersionedDraft<ConsumerProtocolAssignment>): Buffer {
  return encodeVersioned(consumerProtocolAssignment, assignment)
}

export interface VersionedDraft<T> {
  readonly version: number
  readonly value: Draft<T>
  readonly rest?: Uint8Array
}

/** Reads an int16 version and the format behind it. */
export function decodeVersioned<T>(format: Format<T>, bytes: Buffer): Versioned<T> {
  const reader = new Reader(bytes)
  const version = reader.int16()
  const value = format.decode(reader, Math.min(version, format.maxVersion))
  return { version, value, rest: reader.remaining === 0 ? noRest : reader.slice(reader.remaining) }
}

/** Writes what {@link decodeVersioned} reads, in bytes of its own. */
export function encodeVersioned<T>(format: Format<T>, { version, value, rest }: VersionedDraft<T>): Buffer {
  const writer = new Writer(128)
  writer.int16(version)
  format.encode(writer, value, Math.min(version, format.maxVersion))
  if (rest !== undefined) writer.raw(rest)
  return writer.finish()
}
