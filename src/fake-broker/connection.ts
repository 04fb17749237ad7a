/**
 * One client connection of a fake broker: frames in, one request served at a time as a broker does, answers out in
 * order. Tests may take hold of any request (`control.ts`). Invariant: after the socket is gone nothing is written.
 */
import { apiKeys, isKnownVersion } from '../protocol/api-table.ts'
import { errorCodes } from '../protocol/error-codes.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { decodeRequestHeader, encodeResponseHeader } from '../protocol/headers.ts'
import type { RequestHeader } from '../protocol/headers.ts'
import { Reader } from '../protocol/reader.ts'
import { Writer } from '../protocol/writer.ts'
import type { Socket, SocketHandler } from '../runtime/socket.ts'
import type { Api } from './api.ts'
import { apis } from './apis.ts'
import type { Cluster, Node } from './cluster.ts'
import type { Fault } from './control.ts'

const SIZE_BYTES = 4
const MAX_FRAME_BYTES = 100 * 1024 * 1024
const READ_BUFFER_BYTES = 64 * 1024

/** A request whose answer is still to come, in the order of arrival. */
interface Pending {
  header: RequestHeader
  api: Api
  fault: Fault | undefined
}

export class BrokerConnection implements SocketHandler {
  readonly id: number
  readonly #cluster: Cluster
  readonly #node: Node
  readonly #socket: Socket
  readonly #onClosed: (connection: BrokerConnection) => void
  readonly #readBuffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)
  readonly #queue: Buffer[] = []
  #size = Buffer.alloc(0)
  #frame: Buffer | undefined
  #filled = 0
  #busy = false
  #ended = false
  #closed = false

  constructor(cluster: Cluster, node: Node, socket: Socket, id: number, onClosed: (c: BrokerConnection) => void) {
    this.#cluster = cluster
    this.#node = node
    this.#socket = socket
    this.id = id
    this.#onClosed = onClosed
  }

  close(reset = false): void {
    if (!this.#closed) this.#socket.destroy(reset)
  }

  onConnect(): void {
    this.#socket.resume()
  }

  buffer(): Uint8Array {
    return this.#frame === undefined ? this.#readBuffer : this.#frame.subarray(this.#filled)
  }

  onData(length: number): void {
    if (this.#frame !== undefined) this.#fill(length)
    else this.#split(this.#readBuffer.subarray(0, length))
    this.#serve()
  }

  onDrain(): void {
    // Answers are never held back: a reader this slow is a test's own doing.
  }

  onEnd(): void {
    this.#ended = true
    this.#serve()
  }

  onClose(): void {
    this.#closed = true
    this.#queue.length = 0
    this.#onClosed(this)
  }

  #split(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      const missing = SIZE_BYTES - this.#size.length
      this.#size = Buffer.concat([this.#size, bytes.subarray(at, at + missing)])
      at += missing
      if (this.#size.length < SIZE_BYTES) return
      const size = this.#size.readInt32BE(0)
      this.#size = Buffer.alloc(0)
      if (size < 0 || size > MAX_FRAME_BYTES) return this.close()
      const part = bytes.subarray(at, at + size)
      at += part.length
      this.#frame = Buffer.allocUnsafe(size)
      this.#frame.set(part)
      this.#filled = 0
      this.#fill(part.length)
    }
  }

  #fill(length: number): void {
    this.#filled += length
    if (this.#frame === undefined || this.#filled < this.#frame.length) return
    this.#queue.push(this.#frame)
    this.#frame = undefined
  }

  #serve(): void {
    while (!this.#busy && !this.#closed) {
      const frame = this.#queue.shift()
      if (frame !== undefined) this.#serveFrame(frame)
      else if (this.#ended) return this.#socket.end()
      else return
    }
  }

  #serveFrame(frame: Buffer): void {
    const decoded = this.#decode(frame)
    if (decoded === undefined) this.close()
    else if (decoded.request === undefined) this.#refuseVersion(decoded.header, decoded.api)
    else this.#dispatch(decoded.header, decoded.api, decoded.request)
  }

  /** Undefined: nothing a broker would answer. Without a request: an ApiVersions newer than ours. */
  #decode(frame: Buffer): { header: RequestHeader; api: Api; request?: object } | undefined {
    try {
      const reader = new Reader(frame)
      const header = decodeRequestHeader(reader)
      const api = apis.get(header.apiKey)
      const maxVersion = Math.min(api?.maxVersion ?? -1, this.#cluster.options.maxVersions[header.apiKey] ?? 99)
      if (api?.key === apiKeys.ApiVersions && header.apiVersion > maxVersion) return { header, api }
      const offered = api !== undefined && header.apiVersion >= api.minVersion && header.apiVersion <= maxVersion
      if (!offered || !isKnownVersion(header.apiKey, header.apiVersion)) return undefined
      return { header, api, request: api.decode(reader, header.apiVersion) }
    } catch (error) {
      if (error instanceof ProtocolError) return undefined
      throw error
    }
  }

  #dispatch(header: RequestHeader, api: Api, request: object): void {
    const { apiKey, apiVersion, correlationId } = header
    const clientId = header.clientId ?? ''
    const connectionId = this.id
    const nodeId = this.#node.id
    const clientHost = `/${this.#socket.remoteAddress}`
    const intercepted = { nodeId, connectionId, apiKey, apiVersion, correlationId, clientId, clientHost, request }
    const fault = this.#cluster.controls.ask(intercepted)
    if (fault !== undefined && 'close' in fault) return this.close()
    const pending = { header, api, fault }
    const silent = api.isSilent(request) || (fault !== undefined && 'swallow' in fault)
    if (fault !== undefined && 'answer' in fault) return silent ? undefined : this.#reply(pending, fault.answer)
    if (fault !== undefined && 'swallow' in fault && fault.unserved === true) return
    this.#busy = !silent
    const reply = (response: object): void => (silent ? undefined : this.#reply(pending, response))
    const response = api.handle({
      cluster: this.#cluster,
      node: this.#node,
      connectionId,
      clientId,
      clientHost,
      version: apiVersion,
      request,
      nowMs: this.#cluster.runtime.now(),
      reply,
    })
    if (response !== undefined) reply(response)
    this.#cluster.arm()
  }

  #reply(pending: Pending, response: object): void {
    const { header, api, fault } = pending
    const frame = encodeFrame(header, (writer) => api.encode(writer, response, header.apiVersion))
    if (fault !== undefined && 'delayMs' in fault) {
      if (fault.overtake === true) this.#next()
      this.#cluster.runtime.timer(fault.delayMs, () => {
        this.#write(frame)
        if (fault.overtake !== true) this.#next()
      })
      return
    }
    if (fault !== undefined && 'cutAt' in fault) {
      this.#write(frame.subarray(0, fault.cutAt))
      this.#socket.end()
      return
    }
    this.#write(fault !== undefined && 'rewrite' in fault ? fault.rewrite(frame) : frame)
    this.#next()
  }

  #next(): void {
    this.#busy = false
    this.#cluster.runtime.soon(() => this.#serve())
  }

  #write(bytes: Buffer): void {
    if (!this.#closed) this.#socket.write(bytes)
  }

  /** A client that is newer than we are learns our versions from the body of version 0 (KIP-511). */
  #refuseVersion(header: RequestHeader, api: Api): void {
    const apiKeys = [{ apiKey: api.key, minVersion: api.minVersion, maxVersion: api.maxVersion }]
    const body = { errorCode: errorCodes.UNSUPPORTED_VERSION, apiKeys }
    this.#write(encodeFrame({ ...header, apiVersion: 0 }, (writer) => api.encode(writer, body, 0)))
  }
}

function encodeFrame(header: RequestHeader, encodeBody: (writer: Writer) => void): Buffer {
  const writer = new Writer()
  writer.int32(0)
  encodeResponseHeader(writer, { correlationId: header.correlationId }, header.apiKey, header.apiVersion)
  encodeBody(writer)
  const frame = writer.finish()
  frame.writeInt32BE(frame.length - SIZE_BYTES, 0)
  return frame
}
