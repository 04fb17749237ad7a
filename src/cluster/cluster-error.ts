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

const advice: Readonly<Record<number, string>> = {
  [errorCodes.TOPIC_AUTHORIZATION_FAILED]:
    "allow it on this topic to the user of Headgate's own connections (without authentication: User:ANONYMOUS)",
  [errorCodes.GROUP_AUTHORIZATION_FAILED]:
    "allow Read on this group to the user of Headgate's own connections (without authentication: User:ANONYMOUS)",
  [errorCodes.CLUSTER_AUTHORIZATION_FAILED]:
    "allow it on the cluster to the user of Headgate's own connections (without authentication: User:ANONYMOUS)",
}

/** An error code in an answer. @param what what was asked, such as `ListOffsets of topic orders, partition 3` */
export function refusal(what: string, errorCode: number, message?: string | null): ClusterError {
  const reason = message == null || message === '' ? '' : ` (${message})`
  const fix = advice[errorCode] === undefined ? '' : `: ${advice[errorCode]}`
  return new ClusterError('HG_CLUSTER_REFUSED', `${what} failed with ${errorName(errorCode)}${reason}${fix}`, errorCode)
}
