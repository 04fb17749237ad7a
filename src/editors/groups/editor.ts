/**
 * Consumer groups (protocol type `consumer`): the answer to JoinGroup tells the leader every member's subscription, its
 * SyncGroup carries the assignment it made of them. The editor keeps the first until the second comes on the same
 * connection, shows both to its policies and writes what they change into the assignment; user data, versions and
 * whatever a newer client appended stay as they were.
 *
 * Invariant: what cannot be read, is of another generation, or names a member that did not join passes untouched.
 */
import type { Connection } from '../../pipeline/connection.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import type { Handler, Interest, Verdict } from '../../pipeline/handler.ts'
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { decodeAssignment, decodeSubscription, encodeAssignment } from '../../protocol/embedded.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { SyncGroupRequest, SyncGroupRequestAssignment } from '../../protocol/generated/14-sync-group.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { AssignmentPolicy, MemberShare } from './policy.ts'

type Subscriber = Omit<MemberShare, 'assigned'>

/** A generation whose leader is at this connection. */
interface Led {
  readonly generation: number
  readonly assignor: string
  readonly members: ReadonlyMap<string, Subscriber>
}

const join = codec(apiKeys.JoinGroup)
const sync = codec(apiKeys.SyncGroup)

export class GroupEditor implements Handler {
  readonly name = 'groups'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.JoinGroup, side: 'request', depth: 'scan' },
    { apiKey: apiKeys.JoinGroup, side: 'response', depth: 'full' },
    { apiKey: apiKeys.SyncGroup, side: 'request', depth: 'full' },
  ]
  private readonly policies: readonly AssignmentPolicy[]
  /** By group, on the connection that its leader joined on. */
  private readonly led = new WeakMap<Connection, Map<string, Led>>()

  constructor(policies: readonly AssignmentPolicy[]) {
    this.policies = policies
  }

  onRequest(exchange: Exchange): Verdict {
    const { request, connection, apiKey, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0) return undefined
    const reader = new Reader(request.bytes, at, request.at + request.total)
    if (apiKey === apiKeys.JoinGroup) {
      // The group is the first field of every version.
      exchange.setState(
        this,
        attempt(() => (apiVersion >= 6 ? reader.compactString() : reader.string())),
      )
      return undefined
    }
    const led = this.led.get(connection)
    if (led === undefined) return undefined
    const body = attempt(() => sync.decodeRequest(reader, apiVersion))
    const noted = body === undefined ? undefined : led.get(body.groupId)
    if (body === undefined || noted === undefined || body.generationId !== noted.generation) return undefined
    led.delete(body.groupId)
    const assignments = attempt(() => this.changed(body, noted))
    if (assignments !== undefined) exchange.request = withBody(request, at, { ...body, assignments }, apiVersion)
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const group = exchange.state<string>(this)
    const { response, connection, apiVersion } = exchange
    if (group === undefined || response === undefined) return undefined
    this.led.get(connection)?.delete(group)
    if (!this.policies.some((policy) => policy.watches())) return undefined
    const end = response.at + response.total
    const at = peekResponseBodyStart(apiKeys.JoinGroup, apiVersion, response.bytes, response.at + 4, end)
    const noted = at < 0 ? undefined : attempt(() => leading(new Reader(response.bytes, at, end), apiVersion))
    if (noted === undefined) return undefined
    const led = this.led.get(connection) ?? new Map<string, Led>()
    this.led.set(connection, led.set(group, noted))
    return undefined
  }

  /** The assignments with what the policies change; undefined where they change nothing. */
  private changed(body: SyncGroupRequest, { assignor, members }: Led): SyncGroupRequestAssignment[] | undefined {
    const decoded = body.assignments.map(({ assignment }) => decodeAssignment(assignment))
    const before = body.assignments.map(({ memberId }, index): MemberShare | undefined => {
      const subscriber = members.get(memberId)
      const assigned = byTopic(decoded[index]?.value.assignedPartitions ?? [])
      return subscriber === undefined ? undefined : { ...subscriber, assigned }
    })
    if (before.length !== members.size || !before.every((share) => share !== undefined)) return undefined
    const after = this.policies.reduce<readonly MemberShare[]>(
      (shares, policy) => policy.plan(body.groupId, assignor, shares),
      before,
    )
    if (after === before) return undefined
    return body.assignments.map((item, index) => {
      const share = after.find(({ member }) => member === item.memberId)
      const old = decoded[index]
      if (share === undefined || old === undefined || share === before[index]) return item
      const value = { ...old.value, assignedPartitions: listed(share.assigned) }
      return { ...item, assignment: encodeAssignment({ ...old, value }) }
    })
  }
}

/** What the leader is told; undefined where the answer is not the leader's, or not of consumers. */
function leading(reader: Reader, version: number): Led | undefined {
  const body = join.decodeResponse(reader, version)
  const isConsumers = body.protocolType === null || body.protocolType === '' || body.protocolType === 'consumer'
  if (body.errorCode !== 0 || body.leader !== body.memberId || body.members.length === 0 || !isConsumers)
    return undefined
  const members = new Map<string, Subscriber>()
  for (const { memberId, metadata } of body.members) {
    const { value } = decodeSubscription(metadata)
    members.set(memberId, { member: memberId, topics: value.topics, owned: byTopic(value.ownedPartitions) })
  }
  return { generation: body.generationId, assignor: body.protocolName ?? '', members }
}

function byTopic(items: readonly { topic: string; partitions: readonly number[] }[]): Record<string, number[]> {
  const partitions: Record<string, number[]> = {}
  for (const item of items) partitions[item.topic] = [...(partitions[item.topic] ?? []), ...item.partitions]
  return partitions
}

function listed(partitions: Readonly<Record<string, readonly number[]>>) {
  return Object.entries(partitions)
    .filter(([, numbers]) => numbers.length > 0)
    .map(([topic, numbers]) => ({ topic, partitions: [...numbers] }))
}

/** Foreign bytes may be anything: what cannot be read is somebody else's business. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

function withBody(request: Frame, bodyAt: number, body: SyncGroupRequest, version: number): Frame {
  const writer = new Writer(request.total + 256)
  writer.raw(request.bytes.subarray(request.at, bodyAt))
  sync.encodeRequest(writer, body, version)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return frameOf(bytes)
}
