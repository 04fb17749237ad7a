/** Free ports for what the tests start. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const chosen = new Set<number>()

/**
 * A block of `count` free consecutive ports on 127.0.0.1, below the range that the kernel uses for outgoing connections: a
 * node that is restarted finds its port free. Never the same port twice in one process.
 */
export async function freePorts(count: number): Promise<number[]> {
  for (;;) {
    const first = randomInt(15_000, 32_000 - count)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if (ports.some((port) => chosen.has(port))) continue
    const free = await Promise.all(ports.map(isFree))
    if (!free.every(Boolean)) continue
    for (const port of ports) chosen.add(port)
    return ports
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
