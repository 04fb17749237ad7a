/** What `headgate check --connect` tries: binding the ports, and asking the upstream for its versions. */
import { connect, createServer } from 'node:net'
import { formatHostPort, type HostPort } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import { describeListenErrors } from '../lifecycle/start-error.ts'

export interface ProbeResult {
  readonly ok: boolean
  readonly text: string
  readonly upstream: boolean
}

/** Binds every configured port once and lets go of it again. */
export async function probePorts(config: Config): Promise<ProbeResult[]> {
  const addresses = config.listeners.flatMap(({ bind, bootstrapPort, basePort, nodeIds }) =>
    [bootstrapPort, ...nodeIds.map((id) => basePort + id)].map((port) => ({ host: bind, port })),
  )
  const errors: Error[] = []
  for (const address of [...addresses, config.admin.bind]) {
    const error = await tryListen(address)
    if (error) errors.push(error)
  }
  return errors.length > 0
    ? describeListenErrors(errors, config).map((text) => ({ ok: false, text, upstream: false }))
    : [{ ok: true, text: `all ${addresses.length + 1} ports are free`, upstream: false }]
}

function tryListen({ host, port }: HostPort): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

export function probeUpstream(config: Config): Promise<ProbeResult[]> {
  return Promise.all(config.upstream.bootstrap.map((address) => probeBroker(address, config.upstream.dialTimeoutMs)))
}

/** ApiVersions v0, correlation id 1, client id "headgate": every broker since 0.10 answers it without authentication. */
const question = Buffer.concat([
  Buffer.from([0, 0, 0, 18, 0, 18, 0, 0, 0, 0, 0, 1, 0, 8]),
  Buffer.from('headgate', 'latin1'),
])

function probeBroker(address: HostPort, timeoutMs: number): Promise<ProbeResult> {
  const where = `upstream ${formatHostPort(address)}`
  return new Promise((resolve) => {
    const socket = connect(address)
    let received = Buffer.alloc(0)
    const finish = (ok: boolean, what: string) => {
      socket.destroy()
      resolve({ ok, text: `${where} ${what}`, upstream: true })
    }
    socket.setTimeout(timeoutMs, () => finish(false, `does not answer within ${timeoutMs} ms`))
    socket.once('connect', () => socket.write(question))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      // length, correlation id, error code, number of APIs
      if (received.length < 14) return
      const isKafka = received.readInt32BE(4) === 1 && received.readInt16BE(8) === 0
      finish(
        isKafka,
        isKafka ? `is a Kafka broker (${received.readInt32BE(10)} APIs)` : 'does not answer as Kafka does',
      )
    })
    socket.once('error', (error) => finish(false, `cannot be reached: ${error.message}`))
    socket.once('end', () => finish(false, 'closed the connection: is it a port with TLS or SASL, or not Kafka?'))
  })
}
