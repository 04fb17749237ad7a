/**
 * Broker addresses in Metadata, FindCoordinator, DescribeCluster, DescribeQuorum, ShareFetch and ShareAcknowledge: each
 * is replaced by the address that this client is to use, and what they say of the brokers is learned. An answer is held
 * while a port that it names is being bound. One that cannot be read closes the connection: it would lead the client
 * around the proxy.
 */
import { apiKeys, apiName } from '../../protocol/api-table.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import { type Close, type Handler, type Interest, taken, type Verdict } from '../../pipeline/handler.ts'
import type { BrokerAddresses } from '../addresses.ts'
import { type BrokerList, clusterBrokers, isUnreadable, metadataBrokers, writeBrokerList } from './broker-list.ts'
import { rewriteCoordinators } from './coordinators.ts'
import { rewriteDecoded } from './decoded.ts'
import type { Rewritten } from './rewritten.ts'

export class AddressEditor implements Handler {
  readonly name = 'addresses'
  readonly interests: readonly Interest[] = [
    apiKeys.Metadata,
    apiKeys.FindCoordinator,
    apiKeys.DescribeCluster,
    apiKeys.DescribeQuorum,
    apiKeys.ShareFetch,
    apiKeys.ShareAcknowledge,
  ].map((apiKey) => ({ apiKey, side: 'response', depth: 'full' }))
  private readonly addresses: BrokerAddresses

  constructor(addresses: BrokerAddresses) {
    this.addresses = addresses
  }

  onResponse(exchange: Exchange): Verdict {
    const { response } = exchange
    if (response === undefined) return undefined
    try {
      const rewritten = this.read(exchange, response)
      const binding = this.addresses.learn(rewritten.seen)
      if (binding === undefined) {
        exchange.response = frameOf(rewritten.build())
        return undefined
      }
      void binding.then(
        () => this.later(exchange),
        (error: Error) => exchange.finish(unavailable(error.message)),
      )
      return taken
    } catch (error) {
      if (!isUnreadable(error)) throw error
      exchange.connection.context.meter.undecodable(exchange.apiKey, exchange.apiVersion)
      const what = `${apiName(exchange.apiKey)} v${exchange.apiVersion}`
      return {
        kind: 'close',
        reason: 'malformed_response',
        detail: `the answer to ${what}: ${(error as Error).message}`,
      }
    }
  }

  /** The ports are bound now; the answer's bytes have been kept (their place may have changed). */
  private later(exchange: Exchange): void {
    if (exchange.response === undefined) return
    exchange.response = frameOf(this.read(exchange, exchange.response).build())
    exchange.finish('forward')
  }

  private read(exchange: Exchange, frame: Frame): Rewritten {
    const { apiKey, apiVersion } = exchange
    const end = frame.at + frame.total
    const bodyAt = peekResponseBodyStart(apiKey, apiVersion, frame.bytes, frame.at + 4, end)
    const reader = new Reader(frame.bytes, bodyAt < 0 ? end : bodyAt, end)
    const address = (nodeId: number) => this.addresses.advertised(exchange.connection, nodeId)
    if (apiKey === apiKeys.Metadata) return splice(frame, metadataBrokers(reader, apiVersion), address)
    if (apiKey === apiKeys.DescribeCluster) return splice(frame, clusterBrokers(reader, apiVersion), address)
    if (apiKey === apiKeys.FindCoordinator) return rewriteCoordinators(frame, reader, apiVersion, address)
    return rewriteDecoded(exchange, frame, reader, address)
  }
}

function splice(frame: Frame, list: BrokerList, address: Parameters<typeof writeBrokerList>[3]): Rewritten {
  return {
    seen: list.controllers ? [] : list.brokers,
    build: () => {
      const writer = new Writer(64 + list.brokers.length * 64)
      writeBrokerList(writer, list, frame.bytes, address)
      const before = frame.bytes.subarray(frame.at, list.from)
      const built = Buffer.concat([before, writer.finish(), frame.bytes.subarray(list.to, frame.at + frame.total)])
      built.writeInt32BE(built.length - 4, 0)
      return built
    },
  }
}

function unavailable(message: string): Close {
  return { kind: 'close', reason: 'address_unavailable', detail: message }
}
