/** Classic groups: who rebalances whom, what the states answer, and who leads. */
import { describeGroups } from '../../../src/protocol/generated/15-describe-groups.ts'
import { deleteGroups } from '../../../src/protocol/generated/42-delete-groups.ts'
import { assigned, joinedAs, Member, orUnanswered, pair } from './member.ts'
import { eventually, type Fact, fact, type Side } from './side.ts'

async function alone(side: Side, instanceId: string | null = null): Promise<Member> {
  return new Member(side.name(), await side.wire(), instanceId)
}

/** A member of the same group on a new connection, with the same id. */
async function elsewhere(side: Side, member: Member): Promise<Member> {
  const twin = new Member(member.group, await side.wire(), member.instanceId)
  twin.id = member.id
  twin.generation = member.generation
  return twin
}

const joining: Fact[] = [
  fact('JoinGroup v3 with an empty member id joins at once', [0, 1, true, 1], async (side) =>
    joinedAs(await (await alone(side)).join({ version: 3 }), 0),
  ),
  fact(
    'JoinGroup v4 and v9 with an empty member id are told one: 79',
    [79, true, [0, 1, true, 1], 79],
    async (side) => {
      const [member, other] = [await alone(side), await alone(side)]
      const first = await member.join({ version: 4 })
      const second = await member.join({ version: 4 })
      return [first.errorCode, first.memberId !== '', joinedAs(second, 0), (await other.join({ version: 9 })).errorCode]
    },
  ),
  fact('a static member with an empty member id joins at once', [0, 1, true, 1], async (side) =>
    joinedAs(await (await alone(side, 'instance')).join(), 0),
  ),
  fact('an id that nobody was given: 25, by JoinGroup, SyncGroup, Heartbeat', [25, 25, 25, 25], async (side) => {
    const { leader } = await pair(side)
    const stranger = await elsewhere(side, leader)
    stranger.id = 'stranger'
    const codes = [(await stranger.join()).errorCode, (await stranger.sync()).errorCode, await stranger.beat()]
    const lost = await alone(side)
    lost.id = 'lost'
    return [...codes, await lost.beat(1)]
  }),
  fact('no protocol in common, or another protocol type: 23', [23, 23], async (side) => {
    const { leader } = await pair(side)
    const [one, two] = [new Member(leader.group, await side.wire()), new Member(leader.group, await side.wire())]
    return [(await one.join({ protocols: ['sticky'] })).errorCode, (await two.join({ protocolType: 'x' })).errorCode]
  }),
  fact('a session timeout below the minimum: 26', 26, async (side) => {
    return (await (await alone(side)).join({ sessionTimeoutMs: 10 })).errorCode
  }),
  fact('each member votes for the first protocol that all know', ['coop', 'coop'], async (side) => {
    const leader = await alone(side)
    const protocols = ['coop', 'range']
    await leader.join({ protocols: ['range', 'coop'] })
    await leader.sync({})
    const second = new Member(leader.group, await side.wire())
    const third = new Member(leader.group, await side.wire())
    const joins = [second.join({ protocols }), third.join({ protocols })]
    await eventually(
      () => memberCount(leader),
      (members) => members === 3,
    )
    const joined = await leader.join({ protocols: ['range', 'coop'] })
    return [joined.protocolName, (await joins[0])?.protocolName]
  }),
]

async function memberCount({ wire, group }: Member): Promise<number | undefined> {
  return (await wire.call(describeGroups, 5, { groups: [group] })).groups[0]?.members.length
}

const rejoining: Fact[] = [
  fact(
    'stable: a follower that joins with the same bytes gets the same generation and disturbs nobody',
    [
      [0, 0, false, 0],
      [0, 0],
      [0, 'two'],
    ],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const again = joinedAs(await follower.join(), generation)
      return [again, [await leader.beat(), await follower.beat()], assigned(await follower.sync())]
    },
  ),
  fact(
    'stable: the same from another connection and with other timeouts; the old connection goes on',
    [
      [0, 0, false, 0],
      [0, 0, 0],
      [0, 'two'],
    ],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const twin = await elsewhere(side, follower)
      const again = await twin.join({ sessionTimeoutMs: 20_000, rebalanceTimeoutMs: 40_000 })
      const beats = [await leader.beat(), await follower.beat(), await twin.beat()]
      return [joinedAs(again, generation), beats, assigned(await twin.sync())]
    },
  ),
  fact(
    'stable: a leader that joins with the same bytes starts a rebalance',
    [
      [0, 1, true, 2],
      [0, 1, false, 0],
    ],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const held = leader.join()
      await follower.told()
      const second = joinedAs(await follower.join(), generation)
      return [joinedAs(await held, generation), second]
    },
  ),
  fact(
    'stable: a follower that joins with other bytes starts a rebalance, and the leader stays',
    [[0, 1, false, 0], [0, 1, true, 2], 'other'],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const held = follower.join({ bytes: 'other' })
      await leader.told()
      const lead = await leader.join()
      const seen = lead.members.find((m) => m.memberId === follower.id)?.metadata.toString()
      return [joinedAs(await held, generation), joinedAs(lead, generation), seen]
    },
  ),
  fact(
    'two JoinGroups of one member on two connections: the first is never answered',
    ['unanswered', [0, 1, true, 2]],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const twin = await elsewhere(side, leader)
      const first = orUnanswered(leader.join())
      await follower.told()
      const second = twin.join()
      await settled(follower)
      await follower.join()
      const answered = await second
      await twin.beat()
      leader.wire.close()
      return [await first, joinedAs(answered, generation)]
    },
  ),
  fact(
    'a cut connection with a held JoinGroup keeps the member; JoinGroup on a new one works',
    ['unanswered', 27, [0, 1, true, 2]],
    async (side) => {
      const { leader, follower, generation } = await pair(side)
      const first = orUnanswered(leader.join())
      await follower.told()
      leader.wire.close()
      const twin = await elsewhere(side, leader)
      const beat = await twin.beat()
      const second = twin.join()
      await settled(follower)
      await follower.join()
      return [await first, beat, joinedAs(await second, generation)]
    },
  ),
  fact(
    'what is sent behind a held JoinGroup waits for its answer, and is too late then: 22',
    [['join', 'beat', 'commit'], 22, 22],
    async (side) => {
      const topic = await side.topic()
      const { leader, follower, generation } = await pair(side)
      const order: string[] = []
      const join = leader.join().then(() => order.push('join'))
      const beat = leader.beat(generation).then((code) => (order.push('beat'), code))
      const commit = leader.commit(topic.name, generation).then((code) => (order.push('commit'), code))
      await follower.told()
      await follower.join()
      await join
      return [(await Promise.all([beat, commit]), order), await beat, await commit]
    },
  ),
]

/** A held JoinGroup shows nowhere: after this many round trips on another connection the coordinator has it. */
async function settled(member: Member): Promise<void> {
  for (let trip = 0; trip < 50; trip++) await member.beat()
}

const states: Fact[] = [
  fact(
    'preparing: commits of the old generation are written, heartbeats told 27, SyncGroup 27',
    { commits: [0, 0], beats: [27, 27], wrong: [22, 22], sync: 27 },
    async (side) => {
      const topic = await side.topic()
      const { leader, follower, generation } = await pair(side)
      const held = orUnanswered(leader.join())
      await follower.told()
      const twin = await elsewhere(side, leader)
      const commits = [await follower.commit(topic.name), await twin.commit(topic.name)]
      const beats = [await follower.beat(), await twin.beat()]
      const wrong = [await follower.commit(topic.name, generation + 1), await follower.beat(generation + 1)]
      const sync = (await follower.sync()).errorCode
      await follower.join()
      await held
      return { commits, beats, wrong, sync }
    },
  ),
  fact(
    'completing: commits old 22, new 27; heartbeats old 22, new 0; stable: old 22',
    { completing: [22, 27, 22, 0], stable: [22, 0, 22, 0] },
    async (side) => {
      const topic = await side.topic()
      const { leader, follower, generation } = await pair(side)
      const held = leader.join()
      await follower.told()
      await follower.join()
      await held
      const ask = async (): Promise<unknown> => [
        await follower.commit(topic.name, generation),
        await follower.commit(topic.name, generation + 1),
        await follower.beat(generation),
        await follower.beat(generation + 1),
      ]
      const completing = await ask()
      await Promise.all([leader.sync({ [follower.id]: 'x' }), follower.sync()])
      return { completing, stable: await ask() }
    },
  ),
  fact(
    'SyncGroup: another protocol name 23, another generation 22; without a plan for it a member gets nothing',
    [23, 22, [0, '']],
    async (side) => {
      const member = await alone(side)
      await member.join()
      const other = await member.sync({}, { protocolName: 'sticky' })
      const late = await member.sync({}, { generation: 7 })
      return [other.errorCode, late.errorCode, assigned(await member.sync({}))]
    },
  ),
  fact("the leader's SyncGroup may come from another connection", [0, 'two'], async (side) => {
    const { leader, follower } = await pair(side)
    const held = leader.join()
    await follower.told()
    await follower.join()
    await held
    const twin = await elsewhere(side, leader)
    const waiting = follower.sync()
    await twin.sync({ [follower.id]: 'two' })
    return assigned(await waiting)
  }),
  fact(
    'a follower that leaves: the leader is told 27; the left member is unknown: 25',
    [0, 25, 25, 25, [0, 1, true, 1]],
    async (side) => {
      const topic = await side.topic()
      const { leader, follower, generation } = await pair(side)
      const left = await follower.leave()
      await leader.told()
      const gone = [await follower.leave(), await follower.beat(), await follower.commit(topic.name)]
      return [left, ...gone, joinedAs(await leader.join(), generation)]
    },
  ),
  fact('the leader leaves: who stays leads', [[0, 1, true, 1], 27], async (side) => {
    const { leader, follower, generation } = await pair(side)
    await leader.leave()
    const beat = await follower.beat()
    return [joinedAs(await follower.join(), generation), beat]
  }),
  fact('the last member leaves and joins again: two generations later', [0, 1, 3], async (side) => {
    const member = await alone(side)
    const first = (await member.join()).generationId
    const left = await member.leave()
    member.id = ''
    return [left, first, (await member.join()).generationId]
  }),
  fact(
    'DescribeGroups: state, protocol, bytes of subscription and assignment',
    ['Stable', 'consumer', 'range', ['same one', 'same two']],
    async (side) => {
      const { leader } = await pair(side)
      const answer = await leader.wire.call(describeGroups, 5, { groups: [leader.group] })
      const { groupState, protocolType, protocolData, members = [] } = answer.groups[0] ?? {}
      const bytes = members.map((m) => `${m.memberMetadata.toString()} ${m.memberAssignment.toString()}`)
      return [groupState, protocolType, protocolData, bytes.sort()]
    },
  ),
  fact('DeleteGroups: 68 with members, 0 without, 69 unknown; the next begins at 1', [68, 0, 69, 1], async (side) => {
    const member = await alone(side)
    await member.join()
    const erase = async (): Promise<number | undefined> => {
      const answer = await member.wire.call(deleteGroups, 2, { groupsNames: [member.group] })
      return answer.results[0]?.errorCode
    }
    const active = await erase()
    await member.leave()
    const codes = [active, await erase(), await erase()]
    member.id = ''
    return [...codes, (await member.join()).generationId]
  }),
]

const statics: Fact[] = [
  fact(
    'a static leader restarts, v9: same generation, leads, skips the assignment, gets the stored one; the old id is 82',
    { joined: [0, 0, true, 2], skip: true, sync: [0, 'one'], other: 0, old: [82, 82] },
    async (side) => {
      const topic = await side.topic()
      const { leader, follower, generation } = await pair(side, ['a', 'b'])
      const again = new Member(leader.group, await side.wire(), 'a')
      const answer = await again.join()
      const sync = assigned(await again.sync())
      const old = [await leader.beat(), await leader.commit(topic.name)]
      const joined = joinedAs(answer, generation)
      return { joined, skip: answer.skipAssignment, sync, other: await follower.beat(), old }
    },
  ),
  fact(
    'a static leader restarts, v8: the old id is named as leader',
    { joined: [0, 0, false, 0], leader: 'old', sync: [0, 'one'] },
    async (side) => {
      const { leader, generation } = await pair(side, ['a', 'b'])
      const again = new Member(leader.group, await side.wire(), 'a')
      const answer = await again.join({ version: 8 })
      const named = answer.leader === leader.id ? 'old' : answer.leader === again.id ? 'new' : answer.leader
      return { joined: joinedAs(answer, generation), leader: named, sync: assigned(await again.sync()) }
    },
  ),
  fact(
    'a static follower restarts with other bytes: no rebalance',
    { joined: [0, 0, false, 0], sync: [0, 'two'], leader: 0, old: 82 },
    async (side) => {
      const { leader, follower, generation } = await pair(side, ['a', 'b'])
      const again = new Member(leader.group, await side.wire(), 'b')
      const joined = joinedAs(await again.join({ bytes: 'other' }), generation)
      const sync = assigned(await again.sync())
      return { joined, sync, leader: await leader.beat(), old: await follower.beat() }
    },
  ),
  fact('a static member leaves by its instance alone; another instance: 25', [0, 25, 27], async (side) => {
    const { leader, follower } = await pair(side, ['a', 'b'])
    const byName = new Member(leader.group, await side.wire(), 'b')
    const unknown = new Member(leader.group, await side.wire(), 'c')
    const codes = [await byName.leave(), await unknown.leave()]
    return [...codes, await leader.beat(follower.generation)]
  }),
]

export const groupFacts: readonly Fact[] = [...joining, ...rejoining, ...states, ...statics]
