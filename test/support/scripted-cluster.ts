/**
 * Brokers on real sockets whose every answer a test can set: they tell of the nodes that the test names, in whatever
 * version of Metadata they are asked, and echo everything else. What a node does with a request is a function.
 */
import net from 'node:net'
import { apiKeys, apis, requestHeaderVersion } from '../../src/protocol/api-table.ts'
import { peekBodyStart } from '../../src/protocol/peek.ts'
import { codecResponse } from './codec-frames.ts'
import { responseFrame, Splitter } from './frames.ts'

/** undefined: nothing is answered. */
export type Respond = (frame: Buffer, socket: net.Socket) => Buffer | undefined

export interface ScriptedNode {
  readonly id: number
  readonly port: number
  readonly sockets: Set<net.Socket>
  /** Requests that came, whole. */
  readonly requests: Buffer[]
  connections: number
}

export class ScriptedCluster {
  /** What Metadata names: node id → address. Changed by tests. */
  readonly named = new Map<number, { host: string; port: number }>()
  readonly nodes = new Map<number, ScriptedNode>()
  respond: Respond | undefined
  private readonly servers = new Map<number, net.Server>()

  /** Starts a node; `name: false` keeps it out of Metadata. */
  async start(id: number, { port = 0, host = '127.0.0.1', name = true } = {}): Promise<ScriptedNode> {
    const sockets = new Set<net.Socket>()
    const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      node.connections++
      sockets.add(socket)
      this.serve(node, socket)
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    const node: ScriptedNode = {
      id,
      port: (server.address() as net.AddressInfo).port,
      sockets,
      requests: [],
      connections: 0,
    }
    this.nodes.set(id, node)
    this.servers.set(id, server)
    if (name) this.named.set(id, { host, port: node.port })
    return node
  }

  /** Stops a node and its connections; Metadata goes on naming it. */
  async stop(id: number, reset = false): Promise<void> {
    const server = this.servers.get(id)
    this.servers.delete(id)
    for (const socket of this.nodes.get(id)?.sockets ?? []) {
      if (reset) socket.resetAndDestroy()
      else socket.destroy()
    }
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
  }

  async close(): Promise<void> {
    for (const id of [...this.servers.keys()]) await this.stop(id)
  }

  private serve(node: ScriptedNode, socket: net.Socket): void {
    const splitter = new Splitter()
    socket.on('data', (bytes: Buffer) => {
      for (const frame of splitter.push(bytes)) {
        node.requests.push(frame)
        const answer = this.answer(frame, socket)
        if (answer !== undefined && !socket.destroyed) socket.write(answer)
      }
    })
    socket.on('end', () => socket.end())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => node.sockets.delete(socket))
  }

  private answer(frame: Buffer, socket: net.Socket): Buffer | undefined {
    const [apiKey, version, id] = [frame.readInt16BE(4), frame.readInt16BE(6), frame.readInt32BE(8)]
    if (apiKey === apiKeys.Metadata) return codecResponse(apiKey, version, id, this.metadata())
    if (apiKey === apiKeys.ApiVersions) return codecResponse(apiKey, version, id, { apiKeys: known })
    if (this.respond !== undefined) return this.respond(frame, socket)
    return responseFrame(id, echoBody(frame, apiKey, version))
  }

  private metadata(): object {
    const brokers = [...this.named].map(([nodeId, address]) => ({ nodeId, ...address, rack: null }))
    return { brokers, clusterId: 'scripted', controllerId: brokers[0]?.nodeId ?? -1, topics: [] }
  }
}

/** The body of a request, behind the tagged fields that a flexible response header has. */
function echoBody(frame: Buffer, apiKey: number, version: number): Buffer {
  const body = frame.subarray(peekBodyStart(frame, 4, frame.length))
  return requestHeaderVersion(apiKey, version) === 2 ? Buffer.concat([Buffer.alloc(1), body]) : body
}

const known = apis
  .filter(({ client }) => client)
  .map(({ key, minVersion, maxVersion }) => ({ apiKey: key, minVersion, maxVersion }))
