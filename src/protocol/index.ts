/**
 * `headgate/protocol`: Kafka's wire protocol as a library of its own, without dependencies. docs/protocol.md shows how
 * it is used.
 */
export type { Api } from './api-table.ts'
export {
  apiByKey,
  apiKeys,
  apiName,
  apis,
  carriesAddresses,
  isFlexible,
  isKnownVersion,
  requestHeaderVersion,
  responseHeaderVersion,
} from './api-table.ts'
export type { Codec, Draft, Format, RecordCodec } from './codec.ts'
export type { AnyCodec } from './codecs.ts'
export { codec } from './codecs.ts'
export {
  controlTypes,
  decodeControlType,
  decodeMarkerEpoch,
  encodeControlKey,
  encodeMarker,
} from './control-records.ts'
export type { Versioned, VersionedDraft } from './embedded.ts'
export { decodeAssignment, decodeSubscription, encodeAssignment, encodeSubscription } from './embedded.ts'
export { requestBytes, requestFrame, responseBytes, responseFrame } from './encode.ts'
export type { ErrorName } from './error-codes.ts'
export { errorCodes, errorName, isRetriable } from './error-codes.ts'
export type { ProtocolErrorCode } from './errors.ts'
export { ProtocolError } from './errors.ts'
export type * from './generated/types.ts'
export type { RequestHeader, ResponseHeader } from './headers.ts'
export {
  decodeRequestHeader,
  decodeResponseHeader,
  encodeRequestHeader,
  encodeResponseHeader,
} from './headers.ts'
export type { InternalRecord } from './internal-topics.ts'
export { decodeInternalRecord, isInternalTopic } from './internal-topics.ts'
export type { GroupPeek, LeavingMember } from './peek.ts'
export {
  peekAcks,
  peekApiKey,
  peekApiVersion,
  peekBodyStart,
  peekClientId,
  peekCorrelationId,
  peekGroup,
  peekLeavingMembers,
  unknownPosition,
} from './peek.ts'
export type { UnknownTag } from './reader.ts'
export { Reader } from './reader.ts'
export { isUuid, zeroUuid } from './uuid.ts'
export { Writer } from './writer.ts'
