/**
 * The one table of Kafka's APIs: what a proxy must know about a request or response whose body it does not open.
 * A row's version range is what the codec knows, including the old versions that Kafka 4 dropped and from which
 * librdkafka and kafkajs infer features. The definitions must agree with it (checked by the code generator).
 */

export interface Api {
  readonly key: number
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  /** First version with compact lengths and tagged fields (KIP-482); Infinity when there is none. */
  readonly flexibleFrom: number
  /** First version whose response carries host and port of brokers; Infinity when none does. */
  readonly addressesFrom: number
  /** The response carries broker addresses in some version. */
  readonly addresses: boolean
  /** A client may send it to a broker's listener; such APIs have a generated codec. */
  readonly client: boolean
  /** The newest version is not final in this Kafka version: brokers offer it only when told to. */
  readonly unstable: boolean
}

type Row = readonly [
  key: number,
  name: string,
  minVersion: number,
  maxVersion: number,
  flexibleFrom: number,
  addressesFrom?: number,
]

const never = Infinity

/** What a broker's listener answers. */
const clientRows: readonly Row[] = [
  [0, 'Produce', 0, 13, 9, 10],
  [1, 'Fetch', 0, 18, 12, 16],
  [2, 'ListOffsets', 0, 11, 6],
  [3, 'Metadata', 0, 13, 9, 0],
  [8, 'OffsetCommit', 0, 10, 8],
  [9, 'OffsetFetch', 0, 10, 6],
  [10, 'FindCoordinator', 0, 6, 3, 0],
  [11, 'JoinGroup', 0, 9, 6],
  [12, 'Heartbeat', 0, 4, 4],
  [13, 'LeaveGroup', 0, 5, 4],
  [14, 'SyncGroup', 0, 5, 4],
  [15, 'DescribeGroups', 0, 6, 5],
  [16, 'ListGroups', 0, 5, 3],
  [17, 'SaslHandshake', 0, 1, never],
  [18, 'ApiVersions', 0, 4, 3],
  [19, 'CreateTopics', 0, 7, 5],
  [20, 'DeleteTopics', 0, 6, 4],
  [21, 'DeleteRecords', 0, 2, 2],
  [22, 'InitProducerId', 0, 6, 2],
  [23, 'OffsetForLeaderEpoch', 0, 4, 4],
  [24, 'AddPartitionsToTxn', 0, 5, 3],
  [25, 'AddOffsetsToTxn', 0, 4, 3],
  [26, 'EndTxn', 0, 5, 3],
  [27, 'WriteTxnMarkers', 0, 2, 1],
  [28, 'TxnOffsetCommit', 0, 5, 3],
  [29, 'DescribeAcls', 0, 3, 2],
  [30, 'CreateAcls', 0, 3, 2],
  [31, 'DeleteAcls', 0, 3, 2],
  [32, 'DescribeConfigs', 0, 4, 4],
  [33, 'AlterConfigs', 0, 2, 2],
  [34, 'AlterReplicaLogDirs', 0, 2, 2],
  [35, 'DescribeLogDirs', 0, 5, 2],
  [36, 'SaslAuthenticate', 0, 2, 2],
  [37, 'CreatePartitions', 0, 3, 2],
  [38, 'CreateDelegationToken', 0, 3, 2],
  [39, 'RenewDelegationToken', 0, 2, 2],
  [40, 'ExpireDelegationToken', 0, 2, 2],
  [41, 'DescribeDelegationToken', 0, 3, 2],
  [42, 'DeleteGroups', 0, 2, 2],
  [43, 'ElectLeaders', 0, 2, 2],
  [44, 'IncrementalAlterConfigs', 0, 1, 1],
  [45, 'AlterPartitionReassignments', 0, 1, 0],
  [46, 'ListPartitionReassignments', 0, 0, 0],
  [47, 'OffsetDelete', 0, 0, never],
  [48, 'DescribeClientQuotas', 0, 1, 1],
  [49, 'AlterClientQuotas', 0, 1, 1],
  [50, 'DescribeUserScramCredentials', 0, 0, 0],
  [51, 'AlterUserScramCredentials', 0, 0, 0],
  [55, 'DescribeQuorum', 0, 2, 0, 2],
  [57, 'UpdateFeatures', 0, 2, 0],
  [60, 'DescribeCluster', 0, 2, 0, 0],
  [61, 'DescribeProducers', 0, 0, 0],
  [64, 'UnregisterBroker', 0, 0, 0],
  [65, 'DescribeTransactions', 0, 0, 0],
  [66, 'ListTransactions', 0, 2, 0],
  [68, 'ConsumerGroupHeartbeat', 0, 1, 0],
  [69, 'ConsumerGroupDescribe', 0, 1, 0],
  [71, 'GetTelemetrySubscriptions', 0, 0, 0],
  [72, 'PushTelemetry', 0, 0, 0],
  [74, 'ListConfigResources', 0, 1, 0],
  [75, 'DescribeTopicPartitions', 0, 0, 0],
  [76, 'ShareGroupHeartbeat', 1, 1, 0],
  [77, 'ShareGroupDescribe', 1, 1, 0],
  [78, 'ShareFetch', 1, 2, 0, 0],
  [79, 'ShareAcknowledge', 1, 2, 0, 0],
  [80, 'AddRaftVoter', 0, 1, 0],
  [81, 'RemoveRaftVoter', 0, 0, 0],
  [83, 'InitializeShareGroupState', 0, 0, 0],
  [84, 'ReadShareGroupState', 0, 0, 0],
  [85, 'WriteShareGroupState', 0, 1, 0],
  [86, 'DeleteShareGroupState', 0, 0, 0],
  [87, 'ReadShareGroupStateSummary', 0, 1, 0],
  [88, 'StreamsGroupHeartbeat', 0, 0, 0],
  [89, 'StreamsGroupDescribe', 0, 0, 0],
  [90, 'DescribeShareGroupOffsets', 0, 1, 0],
  [91, 'AlterShareGroupOffsets', 0, 0, 0],
  [92, 'DeleteShareGroupOffsets', 0, 0, 0],
]

/** Between brokers and controllers only: never offered to clients, no codec. Old ZooKeeper brokers answered the first four. */
const brokerRows: readonly Row[] = [
  [4, 'LeaderAndIsr', 0, 7, 4],
  [5, 'StopReplica', 0, 4, 2],
  [6, 'UpdateMetadata', 0, 8, 6],
  [7, 'ControlledShutdown', 0, 3, 3],
  [52, 'Vote', 0, 2, 0],
  [53, 'BeginQuorumEpoch', 0, 1, 1],
  [54, 'EndQuorumEpoch', 0, 1, 1],
  [56, 'AlterPartition', 0, 3, 0],
  [58, 'Envelope', 0, 0, 0],
  [59, 'FetchSnapshot', 0, 1, 0],
  [62, 'BrokerRegistration', 0, 4, 0],
  [63, 'BrokerHeartbeat', 0, 2, 0],
  [67, 'AllocateProducerIds', 0, 0, 0],
  [70, 'ControllerRegistration', 0, 0, 0],
  [73, 'AssignReplicasToDirs', 0, 0, 0],
  [82, 'UpdateRaftVoter', 0, 0, 0],
]

const unstableKeys: ReadonlySet<number> = new Set([22])

function api(row: Row, client: boolean): Api {
  const [key, name, minVersion, maxVersion, flexibleFrom, addressesFrom = never] = row
  const addresses = addressesFrom !== never
  const unstable = unstableKeys.has(key)
  return { key, name, minVersion, maxVersion, flexibleFrom, addressesFrom, addresses, client, unstable }
}

/** Every API, ordered by key. */
export const apis: readonly Api[] = [
  ...clientRows.map((row) => api(row, true)),
  ...brokerRows.map((row) => api(row, false)),
].sort((a, b) => a.key - b.key)

const byKey: readonly (Api | undefined)[] = apis.reduce<(Api | undefined)[]>((table, row) => {
  table[row.key] = row
  return table
}, [])

/** The row of an API key; undefined for a key that this table does not know. */
export function apiByKey(key: number): Api | undefined {
  return byKey[key]
}

/** `Fetch` for 1; `api 999` for a key that the table does not know. */
export function apiName(key: number): string {
  return byKey[key]?.name ?? `api ${key}`
}

/** Whether the table knows this version of this API. */
export function isKnownVersion(key: number, version: number): boolean {
  const row = byKey[key]
  return row !== undefined && version >= row.minVersion && version <= row.maxVersion
}

/** Whether bodies of this version use compact lengths and tagged fields. */
export function isFlexible(key: number, version: number): boolean {
  const row = byKey[key]
  return row !== undefined && version >= row.flexibleFrom
}

/** Whether this version's response names brokers by host and port. */
export function carriesAddresses(key: number, version: number): boolean {
  const row = byKey[key]
  return row !== undefined && version >= row.addressesFrom
}

/** 0: no client id (ControlledShutdown v0 only), 1: client id, 2: client id and tagged fields. */
export function requestHeaderVersion(key: number, version: number): 0 | 1 | 2 {
  if (key === apiKeys.ControlledShutdown && version === 0) return 0
  return isFlexible(key, version) ? 2 : 1
}

/** 0: correlation id, 1: with tagged fields. ApiVersions is always 0, since its sender does not know the broker (KIP-511). */
export function responseHeaderVersion(key: number, version: number): 0 | 1 {
  if (key === apiKeys.ApiVersions) return 0
  return isFlexible(key, version) ? 1 : 0
}

/** Key by name, for code that means one API. */
export const apiKeys = {
  Produce: 0,
  Fetch: 1,
  ListOffsets: 2,
  Metadata: 3,
  LeaderAndIsr: 4,
  StopReplica: 5,
  UpdateMetadata: 6,
  ControlledShutdown: 7,
  OffsetCommit: 8,
  OffsetFetch: 9,
  FindCoordinator: 10,
  JoinGroup: 11,
  Heartbeat: 12,
  LeaveGroup: 13,
  SyncGroup: 14,
  DescribeGroups: 15,
  ListGroups: 16,
  SaslHandshake: 17,
  ApiVersions: 18,
  CreateTopics: 19,
  DeleteTopics: 20,
  DeleteRecords: 21,
  InitProducerId: 22,
  OffsetForLeaderEpoch: 23,
  AddPartitionsToTxn: 24,
  AddOffsetsToTxn: 25,
  EndTxn: 26,
  WriteTxnMarkers: 27,
  TxnOffsetCommit: 28,
  DescribeAcls: 29,
  CreateAcls: 30,
  DeleteAcls: 31,
  DescribeConfigs: 32,
  AlterConfigs: 33,
  AlterReplicaLogDirs: 34,
  DescribeLogDirs: 35,
  SaslAuthenticate: 36,
  CreatePartitions: 37,
  CreateDelegationToken: 38,
  RenewDelegationToken: 39,
  ExpireDelegationToken: 40,
  DescribeDelegationToken: 41,
  DeleteGroups: 42,
  ElectLeaders: 43,
  IncrementalAlterConfigs: 44,
  AlterPartitionReassignments: 45,
  ListPartitionReassignments: 46,
  OffsetDelete: 47,
  DescribeClientQuotas: 48,
  AlterClientQuotas: 49,
  DescribeUserScramCredentials: 50,
  AlterUserScramCredentials: 51,
  Vote: 52,
  BeginQuorumEpoch: 53,
  EndQuorumEpoch: 54,
  DescribeQuorum: 55,
  AlterPartition: 56,
  UpdateFeatures: 57,
  Envelope: 58,
  FetchSnapshot: 59,
  DescribeCluster: 60,
  DescribeProducers: 61,
  BrokerRegistration: 62,
  BrokerHeartbeat: 63,
  UnregisterBroker: 64,
  DescribeTransactions: 65,
  ListTransactions: 66,
  AllocateProducerIds: 67,
  ConsumerGroupHeartbeat: 68,
  ConsumerGroupDescribe: 69,
  ControllerRegistration: 70,
  GetTelemetrySubscriptions: 71,
  PushTelemetry: 72,
  AssignReplicasToDirs: 73,
  ListConfigResources: 74,
  DescribeTopicPartitions: 75,
  ShareGroupHeartbeat: 76,
  ShareGroupDescribe: 77,
  ShareFetch: 78,
  ShareAcknowledge: 79,
  AddRaftVoter: 80,
  RemoveRaftVoter: 81,
  UpdateRaftVoter: 82,
  InitializeShareGroupState: 83,
  ReadShareGroupState: 84,
  WriteShareGroupState: 85,
  DeleteShareGroupState: 86,
  ReadShareGroupStateSummary: 87,
  StreamsGroupHeartbeat: 88,
  StreamsGroupDescribe: 89,
  DescribeShareGroupOffsets: 90,
  AlterShareGroupOffsets: 91,
  DeleteShareGroupOffsets: 92,
} as const
