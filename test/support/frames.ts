/** Kafka frames for tests, cut and built without the code under test. */
export interface RequestParts {
  apiKey: number
  apiVersion?: number
  correlationId: number
  clientId?: string | null
  /** The header has tagged fields (an empty section is written). */
  flexible?: boolean
  body?: Buffer
}

export function requestFrame(parts: RequestParts): Buffer {
  const { apiKey, apiVersion = 0, correlationId, clientId = 'test', flexible = false, body = Buffer.alloc(0) } = parts
  const id = clientId === null ? undefined : Buffer.from(clientId)
  const head = Buffer.alloc(14)
  head.writeInt16BE(apiKey, 4)
  head.writeInt16BE(apiVersion, 6)
  head.writeInt32BE(correlationId, 8)
  head.writeInt16BE(id === undefined ? -1 : id.length, 12)
  return sized(Buffer.concat([head, id ?? Buffer.alloc(0), Buffer.alloc(flexible ? 1 : 0), body]))
}

export function responseFrame(correlationId: number, body: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeInt32BE(correlationId, 4)
  return sized(Buffer.concat([head, body]))
}

/** Writes the size field of a frame whose first four bytes are kept free for it. */
export function sized(frame: Buffer): Buffer {
  frame.writeInt32BE(frame.length - 4, 0)
  return frame
}

/** Cuts a byte stream into whole frames; what is left over comes last, apart. */
export class Splitter {
  private pieces: Buffer[] = []
  private have = 0

  /** @returns the frames that are complete now, size fields included */
  push(bytes: Buffer): Buffer[] {
    this.pieces.push(bytes)
    this.have += bytes.length
    const frames: Buffer[] = []
    for (;;) {
      const size = this.size()
      if (size === undefined || this.have < size + 4) return frames
      const all = Buffer.concat(this.pieces)
      frames.push(all.subarray(0, size + 4))
      this.pieces = [all.subarray(size + 4)]
      this.have = all.length - size - 4
    }
  }

  /** Bytes of an incomplete frame. */
  get rest(): number {
    return this.have
  }

  private size(): number | undefined {
    if (this.have < 4) return undefined
    if ((this.pieces[0]?.length ?? 0) < 4) this.pieces = [Buffer.concat(this.pieces)]
    return this.pieces[0]?.readInt32BE(0)
  }
}
