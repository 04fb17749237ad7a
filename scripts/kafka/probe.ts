/**
 * Asks a broker whether it is ready, with requests written by hand so that the harness needs nothing of what it
 * tests: Metadata v1 (how many brokers are alive) and FindCoordinator v1 (creates and loads the internal topics).
 */
import { connect } from 'node:net'

/** The brokers that a broker knows to be alive; rejects when it does not answer within a second. */
export async function askBrokers(port: number): Promise<number> {
  const body = await ask(port, 3, 1, Buffer.from([0, 0, 0, 0]))
  return body.readInt32BE(0)
}

/** Whether the coordinator of a group (type 0) or transactional id (type 1) is ready. */
export async function askCoordinator(port: number, type: 0 | 1): Promise<boolean> {
  const key = Buffer.from('probe')
  const body = await ask(port, 10, 1, Buffer.concat([Buffer.from([0, key.length]), key, Buffer.from([type])]))
  return body.readInt16BE(4) === 0
}

/** One request, its answer without the header. */
function ask(port: number, apiKey: number, version: number, body: Buffer): Promise<Buffer> {
  const header = Buffer.from([0, 0, 0, 0, 0, apiKey, 0, version, 0, 0, 0, 7, 0xff, 0xff])
  const request = Buffer.concat([header, body])
  request.writeInt32BE(request.length - 4, 0)
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    const chunks: Buffer[] = []
    socket.setTimeout(1000, () => socket.destroy(new Error('no answer within a second')))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('closed without an answer')))
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      const all = Buffer.concat(chunks)
      if (all.length < 8 || all.length < 4 + all.readInt32BE(0)) return
      resolve(all.subarray(8))
      socket.destroy()
    })
  })
}
