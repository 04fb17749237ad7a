// The simplest TCP proxy that Node can be: node pipe.mjs LISTEN UPSTREAM
import net from 'node:net'

const [listen, upstream] = process.argv.slice(2).map((text) => text.split(':'))
const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const broker = net.connect({ host: upstream[0], port: Number(upstream[1]), noDelay: true, allowHalfOpen: true })
  const stop = () => {
    client.destroy()
    broker.destroy()
  }
  client.on('error', stop).on('close', stop).pipe(broker)
  broker.on('error', stop).on('close', stop).pipe(client)
})
server.listen(Number(listen[1]), listen[0], 1024)
process.once('SIGTERM', () => process.exit()) // an ordinary exit, so that a CPU profile is written
