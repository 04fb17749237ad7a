/**
 * Keys and values of control records: the single record of a control batch. Clients skip types that they do not know.
 */
import { endTxnMarker } from './generated/data-end-txn-marker.ts'
import { decodeVersioned, encodeVersioned } from './embedded.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

/** Types from the control record's key. */
export const controlTypes = {
  abort: 0,
  commit: 1,
  leaderChange: 2,
  snapshotHeader: 3,
  snapshotFooter: 4,
  kraftVersion: 5,
  kraftVoters: 6,
} as const

/** The type of a control record, from its key. Throws ProtocolError on a key that is too short. */
export function decodeControlType(key: Buffer): number {
  const reader = new Reader(key)
  reader.int16() // version: newer ones only append
  return reader.int16()
}

export function encodeControlKey(type: number): Buffer {
  const writer = new Writer(4)
  writer.int16(0)
  writer.int16(type)
  return writer.finish()
}

/** The coordinator epoch in the value of a commit or abort marker. */
export function decodeMarkerEpoch(value: Buffer): number {
  return decodeVersioned(endTxnMarker, value).value.coordinatorEpoch
}

export function encodeMarker(coordinatorEpoch: number): Buffer {
  return encodeVersioned(endTxnMarker, { version: 0, value: { coordinatorEpoch } })
}
