/** What the JavaScript client programs share: commands in, events out, the records to send. See ../README.md. */
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'

/** Records of one send, where nothing else divides them. */
const batchSize = 500
const fillerStep = 131
const fillerSpan = 4096
let filler = Buffer.alloc(0)

/** Printable bytes from a fixed linear congruential sequence: the same in every family's program. */
function fill(length) {
  if (filler.length < length) {
    filler = Buffer.alloc(length)
    let x = 1
    for (let i = 0; i < length; i++) {
      x = (Math.imul(x, 1664525) + 1013904223) >>> 0
      filler[i] = 97 + (x >>> 28)
    }
  }
  return filler
}

function hash(data) {
  return createHash('sha1').update(data).digest('hex').slice(0, 16)
}

export function valueHash(value) {
  return value == null ? null : hash(value)
}

/** `headers`: pairs of name and value. */
export function headersHash(headers) {
  if (headers.length === 0) return ''
  return hash(Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from(`${name}\0`), value, Buffer.from('\0')])))
}

/** The records of a produce command, one after another. */
export function* records(command) {
  const { count = 1, size = 100, keys = 10, headers = 0, timestamp, producer = 'p', start = 0, partitions } = command
  const bytes = fill(size + fillerSpan)
  for (let i = start; i < start + count; i++) {
    const key = keys === 0 ? null : `k${i % keys}é`
    const prefix = Buffer.from(`${producer}|${key ?? ''}|${i}|`)
    const from = (i * fillerStep) % fillerSpan
    const value = Buffer.concat([prefix, bytes.subarray(from, from + Math.max(0, size - prefix.length))])
    const pairs = Array.from({ length: headers }, (_, j) => [
      `h${j}`,
      Buffer.from(j === headers - 1 && j > 0 ? '' : `v${i}-${j}`),
    ])
    yield {
      sequence: i,
      partition: partitions === undefined ? undefined : i % partitions,
      key,
      producer,
      value,
      headers: pairs,
      timestamp: timestamp === undefined ? undefined : timestamp + i,
    }
  }
}

/** The fields that identify a sent record in events. */
function sentFields(topic, record) {
  return {
    topic,
    key: record.key,
    producer: record.producer,
    sequence: record.sequence,
    valueHash: valueHash(record.value),
    headersHash: headersHash(record.headers),
    timestamp: record.timestamp,
  }
}

/** The fields of a delivered record. `key`, `value`: buffers or null. */
export function deliveredFields({ topic, partition, offset, key, value, headers, timestamp }) {
  const [producer, , sequence] = value == null ? [] : value.subarray(0, 200).toString().split('|', 3)
  return {
    topic,
    partition,
    offset: Number(offset),
    key: key == null ? null : key.toString(),
    producer,
    sequence: Number(sequence),
    valueHash: valueHash(value),
    headersHash: headersHash(headers),
    timestamp: Number(timestamp),
  }
}

/** Says what is about to be sent, if the command wants it: a history needs it before the call. */
function emitSent(command, emit, batch, transaction) {
  if (!command.sent) return
  for (const { key, producer, sequence } of batch)
    emit('sent', { topic: command.topic, key, producer, sequence, transaction })
}

/** Says that records could not be sent. */
function emitFailed(command, emit, batch, error) {
  const fields = errorFields(error)
  for (const { key, producer, sequence } of batch)
    emit('failed', { ...fields, topic: command.topic, key, producer, sequence })
}

/**
 * Says that records were sent. `starts`: of each partition, its number and the offset of its first record; a partition that
 * the client chose is known of a record sent alone.
 */
export function emitAcknowledged({ topic }, emit, batch, starts, transaction) {
  const next = new Map(starts)
  for (const record of batch) {
    const partition = record.partition ?? (batch.length === 1 ? starts[0]?.[0] : undefined)
    const offset = partition === undefined ? undefined : next.get(partition)
    if (offset !== undefined) next.set(partition, offset + 1)
    emit('acknowledged', { ...sentFields(topic, record), partition, offset, transaction })
  }
}

/**
 * Sends the records of a produce command by `send(via, batch, transaction)`: via the producer, or, if the command has a
 * transactional id, via what `begin()` gives for each transaction, of which some are aborted.
 */
export async function sendAll(command, emit, { producer, begin, send }) {
  const { transactionalId, perTransaction = command.count, abortEvery = 0 } = command
  if (transactionalId === undefined)
    return paced(command, batchSize, async (batch) => {
      emitSent(command, emit, batch)
      await send(producer, batch).catch((error) => emitFailed(command, emit, batch, error))
    })
  let number = 0
  await paced(command, perTransaction, async (batch) => {
    const via = await begin()
    const transaction = `${transactionalId}-${++number}`
    const abort = abortEvery > 0 && number % abortEvery === 0
    emitSent(command, emit, batch, transaction)
    await send(via, batch, transaction)
    await (abort ? via.abort() : via.commit())
    const outcome = abort ? 'aborted' : 'committed'
    emit('transaction', { producer: command.producer ?? 'p', transaction, outcome })
  })
}

export const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Calls `send(record)` for each record: all at once in groups, or one by one at `rate`, each after the one before if `awaited`. */
async function paced(command, batchSize, send) {
  if (!(command.rate > 0)) {
    let group = []
    for (const record of records(command)) {
      if (command.stopped) break
      group.push(record)
      if (group.length < batchSize) continue
      await send(group)
      group = []
    }
    if (group.length > 0) await send(group)
    return
  }
  const began = performance.now()
  const pending = new Set()
  let sent = 0
  for (const record of records(command)) {
    if (command.stopped) break
    const wait = began + (sent++ * 1000) / command.rate - performance.now()
    if (wait > 0) await delay(wait)
    const one = send([record]).finally(() => pending.delete(one))
    pending.add(one)
    if (command.awaited) await one
  }
  await Promise.all(pending)
}

/**
 * Runs commands until the input ends. `handlers[cmd](command, emit)`; a handler watches `command.stopped` and may set
 * `command.onStop`.
 */
export async function serve(handlers) {
  const running = new Map()
  const tasks = new Set()
  const start = async (command) => {
    let count = 0
    const emit = (event, fields) => {
      if (event === 'acknowledged' || event === 'delivered') count++
      process.stdout.write(`${JSON.stringify({ id: command.id, event, ...fields, at: Date.now() })}\n`)
    }
    running.set(command.id, command)
    let ok = true
    try {
      await handlers[command.cmd](command, emit)
    } catch (error) {
      ok = false
      emit('error', errorFields(error))
    }
    running.delete(command.id)
    emit('end', { ok, count })
  }
  const accept = (line) => {
    const command = JSON.parse(line)
    if (command.cmd === 'stop') {
      const target = running.get(command.target)
      if (target !== undefined) {
        target.stopped = true
        target.onStop?.()
      }
      return
    }
    const task = start(command).finally(() => tasks.delete(task))
    tasks.add(task)
  }
  const fromArguments = process.argv.slice(2)
  for (const line of fromArguments) accept(line)
  if (fromArguments.length === 0) {
    for await (const line of createInterface({ input: process.stdin })) if (line.trim() !== '') accept(line)
  }
  await Promise.all(tasks)
  process.stdout.write('', () => process.exit(0))
}

/** Looks for Kafka's numeric code in an error and its causes. */
export function errorFields(error) {
  let code
  const queue = [error]
  for (let hops = 0; queue.length > 0 && hops < 20; hops++) {
    const one = queue.shift()
    if (one == null) continue
    if (code === undefined && typeof (one.apiCode ?? one.code) === 'number') code = one.apiCode ?? one.code
    queue.push(one.cause, one.originalError, ...(Array.isArray(one.errors) ? one.errors : []))
  }
  return {
    code: code ?? error.apiId ?? error.type ?? error.code ?? error.name,
    message: String(error.message).slice(0, 300),
  }
}
