// The yardstick of the bench: a throw-away forwarder that only cuts the stream into frames and keeps nothing else.
// Headgate is measured against it in the same run; it is a copy, and nothing of it runs in Headgate.
// Proxy that reads both sockets into reused buffers: node read-buffers.mjs LISTEN UPSTREAM [frames]
// Without `frames`: bytes are passed on as they come (64 KiB scratch buffer per direction).
// With `frames`: the stream is cut into Kafka frames; a large frame is read straight into its own pooled
// buffer and passed on whole, so that a feature could look at it (research/code-and-deps.md §6.4).
import net from 'node:net'
const [, , listen, upstream, mode] = process.argv
const [lh, lp] = listen.split(':'),
  [uh, up] = upstream.split(':')
const SCRATCH = 64 * 1024

// --- buffers by power of two
const pool = new Map()
function take(n) {
  const size = 1 << (32 - Math.clz32(Math.max(n, 1024) - 1))
  const list = pool.get(size)
  return list?.pop() ?? Buffer.allocUnsafeSlow(size)
}
function give(buf) {
  let list = pool.get(buf.length)
  if (!list) pool.set(buf.length, (list = []))
  if (list.length < 64) list.push(buf)
}

// One direction of raw copying: reads into one scratch buffer, writes it to `to`.
class Copy {
  constructor() {
    this.scratch = Buffer.allocUnsafeSlow(SCRATCH)
    this.from = null
    this.to = null
  }
  buffer() {
    return this.scratch
  }
  data(n) {
    const part = this.scratch.subarray(0, n)
    this.to.write(part)
    if (this.to.writableLength === 0) return true // the kernel took it all; the scratch buffer is free again
    // the bytes are still in use: give them away and go on with a new scratch buffer, stop reading until 'drain'
    this.scratch = Buffer.allocUnsafeSlow(SCRATCH)
    return !this.to.writableNeedDrain
  }
}

// One direction cut into frames.
class Frames {
  constructor() {
    this.scratch = Buffer.allocUnsafeSlow(SCRATCH)
    this.have = 0
    this.frame = null
    this.need = 0
    this.from = null
    this.to = null
    this.count = 0
  }
  buffer() {
    return this.frame ? this.frame.subarray(this.have, this.need) : this.scratch.subarray(this.have)
  }
  data(n) {
    this.have += n
    if (this.frame) {
      if (this.have === this.need) this.flush()
      return !this.to.writableNeedDrain
    }
    // whole small frames at the front of the scratch buffer go out with one write
    const s = this.scratch
    let at = 0
    while (this.have - at >= 4) {
      const total = 4 + s.readUInt32BE(at)
      if (total > this.have - at) break
      this.count++
      at += total
    }
    const rest = this.have - at
    let total = 0
    if (rest >= 4) total = 4 + s.readUInt32BE(at)
    if (at > 0) this.to.write(s.subarray(0, at))
    const busy = at > 0 && this.to.writableLength > 0
    if (total > SCRATCH / 4) {
      // a large frame has begun: its own buffer
      this.frame = take(total)
      this.need = total
      s.copy(this.frame, 0, at, this.have)
      if (busy) this.scratch = Buffer.allocUnsafeSlow(SCRATCH)
    } else {
      const next = busy ? Buffer.allocUnsafeSlow(SCRATCH) : s
      if (rest > 0 && at > 0) s.copy(next, 0, at, this.have)
      this.scratch = next
    }
    this.have = rest
    return !this.to.writableNeedDrain
  }
  flush() {
    const frame = this.frame
    this.count++
    this.to.write(frame.subarray(0, this.need), () => give(frame))
    this.frame = null
    this.have = this.need = 0
  }
}

const Direction = mode === 'frames' ? Frames : Copy
function onread(dir) {
  return { buffer: () => dir.buffer(), callback: (n) => dir.data(n) }
}

// The accepted socket has no `onread` option: take its handle over into a new socket.
const server = net.createServer({ pauseOnConnect: true, noDelay: true }, (shell) => {
  const handle = shell._handle
  const owner = shell._server
  shell._handle = null
  shell._server = shell.server = null
  shell.destroy()
  const up_ = new Direction(),
    down = new Direction()
  const client = new net.Socket({ handle, allowHalfOpen: true, onread: onread(up_) })
  client._server = client.server = owner
  const broker = net.connect({ host: uh, port: +up, noDelay: true, allowHalfOpen: true, onread: onread(down) })
  up_.from = client
  up_.to = broker
  down.from = broker
  down.to = client
  broker.on('drain', () => client.resume())
  client.on('drain', () => broker.resume())
  client.on('end', () => broker.end())
  broker.on('end', () => client.end())
  const stop = () => {
    client.destroy()
    broker.destroy()
  }
  client.on('error', stop)
  broker.on('error', stop)
  client.on('close', stop)
  broker.on('close', stop)
  broker.on('connect', () => {
    client.resume()
    client.read(0)
  })
})
server.listen(+lp, lh, 1024)
process.once('SIGTERM', () => process.exit()) // an ordinary exit, so that a CPU profile is written
