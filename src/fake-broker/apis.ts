/** Every API of the fake broker by key, and ApiVersions, which tells of them. */
import { errorCodes } from '../protocol/error-codes.ts'
import { apiVersions } from '../protocol/generated/18-api-versions.ts'
import { type Api, api } from './api.ts'
import { produceApi } from './apis/00-produce.ts'
import { fetchApi } from './apis/01-fetch.ts'
import { listOffsetsApi } from './apis/02-list-offsets.ts'
import { metadataApi } from './apis/03-metadata.ts'
import { offsetCommitApi } from './apis/08-offset-commit.ts'
import { offsetFetchApi } from './apis/09-offset-fetch.ts'
import { findCoordinatorApi } from './apis/10-find-coordinator.ts'
import { joinGroupApi } from './apis/11-join-group.ts'
import { heartbeatApi } from './apis/12-heartbeat.ts'
import { leaveGroupApi } from './apis/13-leave-group.ts'
import { syncGroupApi } from './apis/14-sync-group.ts'
import { describeGroupsApi } from './apis/15-describe-groups.ts'
import { listGroupsApi } from './apis/16-list-groups.ts'
import { createTopicsApi } from './apis/19-create-topics.ts'
import { deleteTopicsApi } from './apis/20-delete-topics.ts'
import { deleteRecordsApi } from './apis/21-delete-records.ts'
import { initProducerIdApi } from './apis/22-init-producer-id.ts'
import { offsetForLeaderEpochApi } from './apis/23-offset-for-leader-epoch.ts'
import { addPartitionsToTxnApi } from './apis/24-add-partitions-to-txn.ts'
import { addOffsetsToTxnApi } from './apis/25-add-offsets-to-txn.ts'
import { endTxnApi } from './apis/26-end-txn.ts'
import { txnOffsetCommitApi } from './apis/28-txn-offset-commit.ts'
import { describeConfigsApi } from './apis/32-describe-configs.ts'
import { createPartitionsApi } from './apis/37-create-partitions.ts'
import { deleteGroupsApi } from './apis/42-delete-groups.ts'
import { offsetDeleteApi } from './apis/47-offset-delete.ts'
import { describeClusterApi } from './apis/60-describe-cluster.ts'

/** Brokers advertise Produce from 0, which librdkafka wants to see, and refuse it below 3. */
const ADVERTISED_MINIMUMS: Readonly<Record<number, number>> = { 0: 0 }

const apiVersionsApi = api(
  apiVersions,
  ({ cluster }) => ({
    errorCode: errorCodes.NONE,
    apiKeys: Array.from(apis.values(), ({ key, minVersion, maxVersion }) => ({
      apiKey: key,
      minVersion: ADVERTISED_MINIMUMS[key] ?? minVersion,
      maxVersion: Math.min(maxVersion, cluster.options.maxVersions[key] ?? maxVersion),
    })),
    finalizedFeaturesEpoch: 0,
    supportedFeatures: [],
    finalizedFeatures: [],
  }),
  { max: 4 },
)

export const apis: ReadonlyMap<number, Api> = new Map(
  [
    produceApi,
    fetchApi,
    listOffsetsApi,
    metadataApi,
    offsetCommitApi,
    offsetFetchApi,
    findCoordinatorApi,
    joinGroupApi,
    heartbeatApi,
    leaveGroupApi,
    syncGroupApi,
    describeGroupsApi,
    listGroupsApi,
    apiVersionsApi,
    createTopicsApi,
    deleteTopicsApi,
    deleteRecordsApi,
    initProducerIdApi,
    offsetForLeaderEpochApi,
    addPartitionsToTxnApi,
    addOffsetsToTxnApi,
    endTxnApi,
    txnOffsetCommitApi,
    describeConfigsApi,
    createPartitionsApi,
    deleteGroupsApi,
    offsetDeleteApi,
    describeClusterApi,
  ].map((entry) => [entry.key, entry]),
)
