/**
 * Why the cluster could not be asked, or what it refused. A message says what was asked, where, and what to do about it;
 * `errorCode` is Kafka's, so that callers can tell a refusal for good from one that passes.
 */
import { errorCodes, errorName, isRetriable } from '../protocol/error-codes.ts'

export type ClusterErrorCode =
  | 'HG_CLUSTER_UNREACHABLE' // no connection, no answer, or one that cannot be read
  | 'HG_CLUSTER_VERSION' // the broker offers no version of an API that we know
  | 'HG_CLUSTER_REFUSED' // answered with an error code
  | 'HG_CLUSTER_UNKNOWN' // a topic, leader or broker that Metadata does not name

export class ClusterError extends Error {
  override readonly name = 'ClusterError'
  readonly code: ClusterErrorCode
  /** Kafka's error code; 0 where none was answered. */
  readonly errorCode: number

  constructor(code: ClusterErrorCode, message: string, errorCode = 0, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.errorCode = errorCode
  }

  /** Whether the same question may succeed later, or at another broker. */
  get passes(): boolean {
    return this.code !== 'HG_CLUSTER_VERSION' && (this.errorCode === 0 || isRetriable(this.errorCode))
  }
}

/** What our own user lacks, by the request that was refused: first where it is refused a topic or a group, then the cluster. */
const needed: Readonly<Record<string, string>> = {
  Metadata: 'Describe',
  ListOffsets: 'Describe',
  OffsetForLeaderEpoch: 'Describe',
  OffsetFetch: 'Describe',
  FindCoordinator: 'Describe',
  Fetch: 'Read',
  Produce: 'Write',
  DescribeConfigs: 'DescribeConfigs',
  CreatePartitions: 'Alter',
  CreateTopics: 'Create',
}

const refusedBy: Readonly<Record<number, string>> = {
  [errorCodes.TOPIC_AUTHORIZATION_FAILED]: 'this topic',
  [errorCodes.GROUP_AUTHORIZATION_FAILED]: 'this group',
  [errorCodes.CLUSTER_AUTHORIZATION_FAILED]: 'the cluster',
}

/** An error code in an answer. @param what what was asked, such as `ListOffsets of topic orders, partition 3` */
export function refusal(what: string, errorCode: number, message?: string | null): ClusterError {
  const reason = message == null || message === '' ? '' : ` (${message})`
  const fix = adviceOn(what.split(' ', 1)[0] ?? '', errorCode)
  return new ClusterError('HG_CLUSTER_REFUSED', `${what} failed with ${errorName(errorCode)}${reason}${fix}`, errorCode)
}

function adviceOn(api: string, errorCode: number): string {
  const resource = refusedBy[errorCode]
  if (resource === undefined) return ''
  const operation = needed[api] ?? 'Read'
  return `: allow ${operation} on ${resource} to the user of Headgate's own connections (without authentication: User:ANONYMOUS)`
}
