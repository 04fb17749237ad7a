/** A whole Kafka frame: its size field, header and body lie in `bytes[at, at + total)`. */
export interface Frame {
  readonly bytes: Buffer
  readonly at: number
  readonly total: number
  /** The bytes live on after the current event; lent ones lie in a buffer that the next read overwrites. */
  readonly owned: boolean
}

/** The frame with bytes of its own, which may be kept. */
export function own(frame: Frame): Frame {
  if (frame.owned) return frame
  const bytes = Buffer.allocUnsafe(frame.total)
  frame.bytes.copy(bytes, 0, frame.at, frame.at + frame.total)
  return { bytes, at: 0, total: frame.total, owned: true }
}

/** A whole frame in a buffer of exactly its size. */
export function frameOf(bytes: Buffer): Frame {
  return { bytes, at: 0, total: bytes.length, owned: true }
}
