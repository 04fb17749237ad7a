/**
 * Answers whose addresses stand behind much else: decoded, changed, encoded again. Rare, or (share groups) small enough;
 * record bytes stay slices of what was received.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import type { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Target } from '../../pipeline/connection.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Frame } from '../../pipeline/frame.ts'
import type { KnownBroker } from '../addresses.ts'
import type { Rewritten } from './rewritten.ts'

type Address = (nodeId: number) => Target | undefined

export function rewriteDecoded(exchange: Exchange, frame: Frame, reader: Reader, address: Address): Rewritten {
  if (exchange.apiKey === apiKeys.DescribeQuorum) return rewriteQuorum(exchange, frame, reader, address)
  const api = codec(exchange.apiKey === apiKeys.ShareFetch ? apiKeys.ShareFetch : apiKeys.ShareAcknowledge)
  const body = api.decodeResponse(reader, exchange.apiVersion)
  return {
    seen: body.nodeEndpoints,
    build: () => {
      body.nodeEndpoints = body.nodeEndpoints.flatMap((node) => {
        const shown = address(node.nodeId)
        return shown === undefined ? [] : [{ ...node, ...shown }]
      })
      return encode(exchange, frame, (writer) => api.encodeResponse(writer, body, exchange.apiVersion))
    },
  }
}

/**
 * The voters of the quorum are controllers. Where one is also a broker its address is the one clients use; a node that
 * is only a controller has no listener here, so its list is empty rather than a way around the proxy (KIP-853).
 */
function rewriteQuorum(exchange: Exchange, frame: Frame, reader: Reader, address: Address): Rewritten {
  const api = codec(apiKeys.DescribeQuorum)
  const body = api.decodeResponse(reader, exchange.apiVersion)
  const none: KnownBroker[] = []
  return {
    seen: none,
    build: () => {
      for (const node of body.nodes) {
        const shown = address(node.nodeId)
        node.listeners = shown === undefined ? [] : node.listeners.map((listener) => ({ ...listener, ...shown }))
      }
      return encode(exchange, frame, (writer) => api.encodeResponse(writer, body, exchange.apiVersion))
    },
  }
}

/** The frame with another body: size and header are kept. */
function encode(exchange: Exchange, frame: Frame, write: (writer: Writer) => void): Buffer {
  const { apiKey, apiVersion } = exchange
  const bodyAt = peekResponseBodyStart(apiKey, apiVersion, frame.bytes, frame.at + 4, frame.at + frame.total)
  const writer = new Writer(frame.total + 256)
  writer.raw(frame.bytes.subarray(frame.at, bodyAt))
  write(writer)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return bytes
}
