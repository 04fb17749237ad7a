/**
 * Looks into a request frame without decoding it: what every frame is asked for (api key, version, correlation id, where
 * the body starts), whether a Produce expects an answer, and which group and member a group request speaks for.
 * Positions are absolute and start after the frame's four size bytes; `end` is one past the last byte at hand, which may
 * be only the beginning of the frame. A walk that would leave [at, end) answers "not known", it never throws.
 */
import { apiKeys, requestHeaderVersion, responseHeaderVersion } from './api-table.ts'
import { ProtocolError } from './errors.ts'
import { Reader } from './reader.ts'

/** Bytes of api key, version and correlation id. */
export const fixedHeaderBytes = 8

/** What a walk returns when the bytes at hand end too early or make no sense. */
export const unknownPosition = -1

/** Only meaningful with at least {@link fixedHeaderBytes} bytes at `at`; the same holds for the next two. */
export function peekApiKey(buffer: Buffer, at: number): number {
  return buffer.readInt16BE(at)
}

export function peekApiVersion(buffer: Buffer, at: number): number {
  return buffer.readInt16BE(at + 2)
}

export function peekCorrelationId(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at + 4)
}

/** Where the body starts: after client id and header tags. {@link unknownPosition} when the bytes end before. */
export function peekBodyStart(buffer: Buffer, at: number, end: number): number {
  if (at + fixedHeaderBytes > end) return unknownPosition
  const headerVersion = requestHeaderVersion(buffer.readInt16BE(at), buffer.readInt16BE(at + 2))
  if (headerVersion === 0) return at + fixedHeaderBytes
  const next = skipNullableString(buffer, at + fixedHeaderBytes, end)
  return headerVersion === 2 && next !== unknownPosition ? skipTags(buffer, next, end) : next
}

/**
 * Where the body of the response at `at` starts: after the correlation id and the header tags.
 * {@link unknownPosition} when the bytes end inside the tags.
 */
export function peekResponseBodyStart(
  apiKey: number,
  version: number,
  buffer: Buffer,
  at: number,
  end: number,
): number {
  return responseHeaderVersion(apiKey, version) === 1 ? skipTags(buffer, at + 4, end) : at + 4
}

/** The client id of a request frame; null when it has none or the bytes end before it. */
export function peekClientId(buffer: Buffer, at: number, end: number): string | null {
  const start = at + fixedHeaderBytes
  if (start + 2 > end || requestHeaderVersion(buffer.readInt16BE(at), buffer.readInt16BE(at + 2)) === 0) return null
  const length = buffer.readInt16BE(start)
  return length < 0 || start + 2 + length > end ? null : buffer.toString('utf8', start + 2, start + 2 + length)
}

/**
 * The acks of a Produce request whose body starts at `at`: 0 (no answer will come), 1 or -1. Undefined when the bytes
 * end before it. A transactional id precedes it from version 3 on, compact (length + 1) from version 9 on.
 */
export function peekAcks(buffer: Buffer, at: number, version: number, end: number): number | undefined {
  let next = at
  if (version >= 9) next = skipCompact(buffer, at, end)
  else if (version >= 3) next = skipNullableString(buffer, at, end)
  return next === unknownPosition || next + 2 > end ? undefined : buffer.readInt16BE(next)
}

/** Whom a group request speaks for. */
export interface GroupPeek {
  readonly groupId: string
  /** Empty when the member has no id yet, or commits without being a member. */
  readonly memberId: string
  /** Generation, or member epoch in the newer protocols (KIP-848); -1 when the request has none. */
  readonly generation: number
  /** group.instance.id of a static member (KIP-345), else null. */
  readonly instanceId: string | null
}

/** A group request's group and member, body at `at`; undefined for other APIs, for damaged or incomplete bytes. */
export function peekGroup(
  apiKey: number,
  version: number,
  buffer: Buffer,
  at: number,
  end: number,
): GroupPeek | undefined {
  const walk = groupWalks[apiKey]
  if (walk === undefined || at > end) return undefined
  try {
    return walk(new Reader(buffer, at, end), version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

/** One of the members that a LeaveGroup removes; all of them, where {@link peekGroup} names only the first. */
export interface LeavingMember {
  readonly memberId: string
  readonly instanceId: string | null
}

/** The members that a LeaveGroup removes, body at `at`; undefined for damaged or incomplete bytes. */
export function peekLeavingMembers(
  version: number,
  buffer: Buffer,
  at: number,
  end: number,
): LeavingMember[] | undefined {
  if (at > end) return undefined
  try {
    const reader = new Reader(buffer, at, end)
    text(reader, version >= 4)
    return leavingMembers(reader, version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

type GroupWalk = (reader: Reader, version: number) => GroupPeek

const groupWalks: Readonly<Record<number, GroupWalk>> = {
  [apiKeys.JoinGroup]: peekJoin,
  [apiKeys.SyncGroup]: (reader, version) => peekGeneration(reader, version >= 4, version >= 3),
  [apiKeys.Heartbeat]: (reader, version) => peekGeneration(reader, version >= 4, version >= 3),
  [apiKeys.LeaveGroup]: peekLeave,
  [apiKeys.OffsetCommit]: peekCommit,
  [apiKeys.ConsumerGroupHeartbeat]: (reader) => peekMemberEpoch(reader, true),
  [apiKeys.ShareGroupHeartbeat]: (reader) => peekMemberEpoch(reader, false),
  [apiKeys.StreamsGroupHeartbeat]: (reader) => peekMemberEpoch(reader, false),
}

function peekJoin(reader: Reader, version: number): GroupPeek {
  const flexible = version >= 6
  const groupId = text(reader, flexible)
  reader.skip(version >= 1 ? 8 : 4) // session and rebalance timeouts
  const memberId = text(reader, flexible)
  const instanceId = version >= 5 ? nullableText(reader, flexible) : null
  return { groupId, memberId, generation: -1, instanceId }
}

function peekGeneration(reader: Reader, flexible: boolean, hasInstance: boolean): GroupPeek {
  const groupId = text(reader, flexible)
  const generation = reader.int32()
  const memberId = text(reader, flexible)
  const instanceId = hasInstance ? nullableText(reader, flexible) : null
  return { groupId, memberId, generation, instanceId }
}

function peekCommit(reader: Reader, version: number): GroupPeek {
  if (version === 0) return { groupId: text(reader, false), memberId: '', generation: -1, instanceId: null }
  return peekGeneration(reader, version >= 8, version >= 7)
}

function peekMemberEpoch(reader: Reader, hasInstance: boolean): GroupPeek {
  const groupId = reader.compactString()
  const memberId = reader.compactString()
  const generation = reader.int32()
  const instanceId = hasInstance ? reader.compactNullableString() : null
  return { groupId, memberId, generation, instanceId }
}

function peekLeave(reader: Reader, version: number): GroupPeek {
  const groupId = text(reader, version >= 4)
  const first = leavingMembers(reader, version)[0]
  return { groupId, memberId: first?.memberId ?? '', generation: -1, instanceId: first?.instanceId ?? null }
}

function leavingMembers(reader: Reader, version: number): LeavingMember[] {
  const flexible = version >= 4
  if (version < 3) return [{ memberId: text(reader, flexible), instanceId: null }]
  const members: LeavingMember[] = []
  for (let left = flexible ? reader.compactCount(3) : reader.count(4); left > 0; left--) {
    const memberId = text(reader, flexible)
    const instanceId = nullableText(reader, flexible)
    if (version >= 5) nullableText(reader, flexible) // the reason, for the broker's log
    if (flexible) reader.skipTags()
    members.push({ memberId, instanceId })
  }
  return members
}

function text(reader: Reader, flexible: boolean): string {
  return flexible ? reader.compactString() : reader.string()
}

function nullableText(reader: Reader, flexible: boolean): string | null {
  return flexible ? reader.compactNullableString() : reader.nullableString()
}

function skipNullableString(buffer: Buffer, at: number, end: number): number {
  if (at + 2 > end) return unknownPosition
  const next = at + 2 + Math.max(0, buffer.readInt16BE(at))
  return next > end ? unknownPosition : next
}

/** Skips a compact string or bytes: length + 1 as a varint, 0 for null. */
function skipCompact(buffer: Buffer, at: number, end: number): number {
  const start = skipUvarint(buffer, at, end)
  if (start === unknownPosition) return unknownPosition
  const next = start + Math.max(0, uvarintAt(buffer, at, start) - 1)
  return next > end ? unknownPosition : next
}

/** Skips a section of tagged fields; {@link unknownPosition} when it does not end within [at, end). */
export function skipTags(buffer: Buffer, at: number, end: number): number {
  let next = skipUvarint(buffer, at, end)
  if (next === unknownPosition) return unknownPosition
  for (let left = uvarintAt(buffer, at, next); left > 0; left--) {
    const sizeAt = skipUvarint(buffer, next, end)
    if (sizeAt === unknownPosition) return unknownPosition
    const dataAt = skipUvarint(buffer, sizeAt, end)
    if (dataAt === unknownPosition) return unknownPosition
    next = dataAt + uvarintAt(buffer, sizeAt, dataAt)
    if (next > end) return unknownPosition
  }
  return next
}

/** Where the varint at `at` ends; at most five bytes. */
function skipUvarint(buffer: Buffer, at: number, end: number): number {
  const limit = Math.min(end, at + 5)
  for (let next = at; next < limit; next++) {
    if (buffer.readUInt8(next) < 0x80) return next + 1
  }
  return unknownPosition
}

/** The varint in [at, end), whose end is known; as a number, so that a fifth byte cannot turn it negative. */
function uvarintAt(buffer: Buffer, at: number, end: number): number {
  let value = 0
  for (let next = end - 1; next >= at; next--) value = value * 128 + (buffer.readUInt8(next) & 0x7f)
  return value
}
