/** A TCP relay that can be cut: what a proxy behind it sees is a cluster that is gone. */
import { connect, createServer, type Server, type Socket } from 'node:net'

export class Relay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  private constructor(server: Server) {
    this.#server = server
  }

  /** Listens on 127.0.0.1:`port` and passes everything to 127.0.0.1:`to`. */
  static start(port: number, to: number): Promise<Relay> {
    const server = createServer()
    const relay = new Relay(server)
    server.on('connection', (client) => relay.#join(client, to))
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => resolve(relay))
    })
  }

  /** Breaks every connection, and every new one until `mend`. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  stop(): void {
    this.cut()
    this.#server.close()
  }

  #join(client: Socket, to: number): void {
    if (this.#isCut) {
      client.destroy()
      return
    }
    const broker = connect({ port: to, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    for (const [from, other] of [
      [client, broker],
      [broker, client],
    ] as const) {
      this.#sockets.add(from)
      from.pipe(other)
      from.on('error', () => other.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        other.destroy()
      })
    }
  }
}
