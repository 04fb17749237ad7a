import assert from 'node:assert/strict'
import test from 'node:test'
import { Instances } from '../../../src/instances/registry.ts'
import { isLoopbackAddress, isToken, tokenAddress, tokenCount } from '../../../src/instances/token.ts'
import type { Instance, InstanceConnection } from '../../../src/pipeline/instance.ts'
import { VirtualRuntime } from '../../support/virtual-runtime.ts'

class Fake implements InstanceConnection {
  instance: Instance | undefined
  readonly id: number
  readonly listener: string
  readonly nodeId: number
  readonly remoteAddress: string
  readonly localAddress: string

  constructor(id: number, listener: string, nodeId: number, localAddress: string, remoteAddress = '127.0.0.1') {
    this.id = id
    this.listener = listener
    this.nodeId = nodeId
    this.localAddress = localAddress
    this.remoteAddress = remoteAddress
  }
}

class World {
  readonly runtime = new VirtualRuntime(1)
  readonly instances = new Instances({ runtime: this.runtime, isLoopback: (listener) => listener === 'loop' })
  private sequence = 0

  /** A connection as the proxy treats one: accepted, then its first request. */
  connect(listener: string, nodeId: number, local: string, clientId: string | null = 'app', remote?: string): Fake {
    const connection = new Fake(++this.sequence, listener, nodeId, local, remote)
    connection.instance = this.instances.opened(connection)
    connection.instance = this.instances.named(connection, clientId)
    return connection
  }

  bind(connection: Fake, memberId: string, generation = 1, groupId = 'group'): void {
    this.instances.bound(connection, { groupId, memberId, generation, instanceId: null })
  }

  close(connection: Fake): void {
    this.instances.closed(connection)
  }
}

function memberOf(connection: Fake, groupId = 'group') {
  const membership = connection.instance?.memberships.get(groupId)
  return membership === undefined ? undefined : [membership.memberId, membership.generation]
}

test('ports: connections with one source and client id are one instance, across nodes', () => {
  const world = new World()
  const [boot, node] = [world.connect('ports', -1, '10.0.0.1'), world.connect('ports', 2, '10.0.0.1')]
  assert.equal(boot.instance, node.instance)
  assert.equal(boot.instance?.recognisedBy, 'source')
  assert.equal(boot.instance?.connections, 2)
  assert.notEqual(world.connect('ports', 2, '10.0.0.1', 'other').instance, node.instance)
  assert.notEqual(world.connect('ports', 2, '10.0.0.1', 'app', '10.0.0.9').instance, node.instance)
  assert.notEqual(world.connect('more', 2, '10.0.0.1').instance, node.instance)
  assert.equal(world.connect('ports', 0, '10.0.0.1', null).instance?.clientId, null)
  world.bind(boot, 'm1', 4)
  assert.deepEqual(memberOf(node), ['m1', 4], 'the Fetch connection inherits what the coordinator connection showed')
  assert.equal(node.instance?.ambiguous, false)
})

test('ports: two consumers of one process, one group, same client id cannot be told apart', () => {
  const world = new World()
  const [a, b] = [world.connect('ports', 1, '10.0.0.1'), world.connect('ports', 1, '10.0.0.1')]
  world.bind(a, 'member-a')
  world.bind(b, 'member-b')
  assert.equal(a.instance?.ambiguous, false, 'it might be the same consumer in a new life')
  world.bind(a, 'member-a')
  assert.equal(a.instance?.ambiguous, true)
  assert.equal(a.instance, b.instance)
})

test('ports: a consumer that comes back under a new member id is not two', () => {
  const world = new World()
  const connection = world.connect('ports', 1, '10.0.0.1')
  world.bind(connection, '', -1)
  world.bind(connection, 'm1', 1)
  world.bind(connection, 'm1', 2)
  world.bind(connection, 'm2', 1)
  world.bind(connection, 'm3', 1)
  assert.equal(connection.instance?.ambiguous, false)
  assert.deepEqual(memberOf(connection), ['m3', 1])
})

test('several groups of one instance are kept apart; leaving ends only its own', () => {
  const world = new World()
  const connection = world.connect('ports', 1, '10.0.0.1')
  world.bind(connection, 'm1', 1, 'one')
  world.bind(connection, 'm2', 5, 'two')
  world.instances.committed(connection, 'three')
  assert.deepEqual([...(connection.instance?.memberships.keys() ?? [])], ['one', 'two', 'three'])
  assert.deepEqual(memberOf(connection, 'three'), ['', -1])
  world.instances.left(connection, 'one', 'somebody else')
  assert.deepEqual(memberOf(connection, 'one'), ['m1', 1])
  world.instances.left(connection, 'one', 'm1')
  assert.equal(memberOf(connection, 'one'), undefined)
  assert.deepEqual(memberOf(connection, 'two'), ['m2', 5])
})

test('loopback: each bootstrap connection starts an instance with an address of its own', () => {
  const world = new World()
  const [a, b] = [world.connect('loop', -1, '127.0.0.1'), world.connect('loop', -1, '127.0.0.1')]
  const [addressA, addressB] = [a, b].map((each) => world.instances.addressOf(each))
  assert.ok(addressA !== undefined && addressB !== undefined && addressA !== addressB)
  assert.ok(isToken(addressA) && isToken(addressB))
  const node = world.connect('loop', 3, addressB)
  assert.equal(node.instance, b.instance)
  assert.equal(node.instance?.recognisedBy, 'address')
  world.bind(a, 'member-a')
  world.bind(b, 'member-b')
  world.bind(a, 'member-a')
  world.bind(node, 'member-b')
  assert.equal(
    a.instance?.ambiguous || b.instance?.ambiguous,
    false,
    'same client id, same group, and exact all the same',
  )
  assert.deepEqual(memberOf(node), ['member-b', 1])
})

test('loopback: two bootstraps that show the same member are one instance, with all their connections', () => {
  const world = new World()
  const first = world.connect('loop', -1, '127.0.0.1')
  const second = world.connect('loop', -1, '127.0.0.1')
  const address = world.instances.addressOf(second) ?? ''
  const fetching = world.connect('loop', 1, address)
  const later = world.connect('loop', 2, address)
  world.bind(second, 'm0', 1, 'another group')
  world.bind(first, 'm1')
  world.bind(later, 'm1')
  const instances = new Set([first, second, fetching, later].map((each) => each.instance))
  assert.equal(instances.size, 1, 'also the connections that were there before the merge')
  assert.equal(first.instance?.connections, 4)
  assert.deepEqual(memberOf(first, 'another group'), ['m0', 1])
  assert.equal(world.connect('loop', 5, address).instance, first.instance, 'its address still leads to it')
  assert.equal(world.instances.all().length, 1)
  for (const each of [first, second, fetching, later]) world.close(each)
  assert.equal(first.instance?.connections, 1)
})

test('loopback: an unknown token is adopted, as after a restart, and goes on to be shown', () => {
  const world = new World()
  const address = tokenAddress(123_456)
  const connection = world.connect('loop', 4, address)
  assert.equal(world.instances.addressOf(connection), address)
  assert.equal(world.connect('loop', 7, address).instance, connection.instance)
})

test('an address that is in use is not given out again', () => {
  const runtime = new VirtualRuntime(1)
  let next = 0
  runtime.random = () => (next++ < 3 ? 42 : next)
  const instances = new Instances({ runtime, isLoopback: () => true })
  const shown = [1, 2].map((id) => {
    const connection = new Fake(id, 'loop', -1, '127.0.0.1')
    connection.instance = instances.opened(connection)
    return instances.addressOf(connection)
  })
  assert.equal(new Set(shown).size, 2)
})

test('who is gone is remembered for a while, who never said anything is not', async () => {
  const world = new World()
  const probe = new Fake(1, 'loop', -1, '127.0.0.1')
  probe.instance = world.instances.opened(probe)
  world.close(probe)
  assert.equal(world.instances.all().length, 0)
  const [gone, stays] = [world.connect('ports', 1, '10.0.0.1', 'gone'), world.connect('ports', 1, '10.0.0.1', 'stays')]
  world.close(gone)
  await world.runtime.run(undefined, 10 * 60_000)
  assert.equal(world.connect('ports', 1, '10.0.0.1', 'gone').instance, gone.instance)
  world.close(gone)
  await world.runtime.run(undefined, 20 * 60_000)
  assert.deepEqual(
    world.instances.all().map(({ clientId }) => clientId),
    ['gone', 'stays'],
  )
  world.close(stays)
  await world.runtime.run(undefined, 20 * 60_000)
  assert.deepEqual(
    world.instances.all().map(({ clientId }) => clientId),
    ['gone'],
  )
})

test('tokens lie in 127.64.0.0 to 127.127.255.255, each another address', () => {
  assert.equal(tokenAddress(0), '127.64.0.0')
  assert.equal(tokenAddress(tokenCount - 1), '127.127.255.255')
  const seen = new Set([0, 1, 255, 256, 65_535, 65_536, tokenCount - 1].map((token) => tokenAddress(token)))
  assert.equal(seen.size, 7)
  for (const address of seen) assert.ok(isToken(address) && isLoopbackAddress(address))
  for (const address of ['127.0.0.1', '127.63.255.255', '127.128.0.0', '10.64.0.1', '::1', ''])
    assert.equal(isToken(address), false, address)
  for (const address of ['10.0.0.1', '::1', '1127.0.0.1', '']) assert.equal(isLoopbackAddress(address), false, address)
})

test('an instance that goes from group to group, or from member id to member id, costs no more with time', () => {
  const world = new World()
  const connection = world.connect('ports', 1, '10.0.0.1')
  for (let i = 0; i < 5000; i++) {
    world.bind(connection, `m${i}`, 1, `group-${i}`)
    world.bind(connection, `m${i}`, 1)
  }
  const groups = [...(connection.instance?.memberships.keys() ?? [])]
  assert.equal(groups.length, 1000)
  assert.deepEqual(memberOf(connection), ['m4999', 1], 'what is in use stays')
  assert.equal(connection.instance?.ambiguous, false)
  world.bind(connection, 'm0', 1)
  assert.equal(connection.instance?.ambiguous, false, 'so long ago that nobody remembers')
  world.bind(connection, 'm4999', 1)
  assert.equal(connection.instance?.ambiguous, true)
})
