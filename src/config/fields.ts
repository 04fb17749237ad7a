/** The kinds of value a setting can have. Each turns what people write into what the code uses, or says what to write. */
import { z } from 'zod'
import { type HostPort, maxNodeIds, parseDialList, parseHostPort, parseNodeIds } from './address.ts'
import { parseDuration, parseSize } from './units.ts'

type Context = z.core.$RefinementCtx

/** Adds an error whose `fix` says what to write instead. */
export function refuse(context: Context, message: string, fix: string, path: PropertyKey[] = []): typeof z.NEVER {
  context.addIssue({ code: 'custom', message, params: { fix }, path })
  return z.NEVER
}

/** An error for a value of the wrong type; `fix` says what to write. */
const wrongType = (fix: string) => ({ error: () => `has the wrong type\n${fix}` })

const durationFix = 'write a duration such as 500ms, 10s or 2m (a plain number counts milliseconds)'
const sizeFix = 'write a size such as 64KiB or 100MiB (a plain number counts bytes)'
const hostPortFix = 'write host:port, for example kafka-1:9092 (IPv6: [::1]:9092)'

function toDuration(value: string | number, minMs: number, context: Context): number {
  const parsed = parseDuration(value)
  if (parsed === undefined) return refuse(context, `is not a duration: ${JSON.stringify(value)}`, durationFix)
  if (parsed < minMs) return refuse(context, `is too short: ${value}`, `write at least ${minMs}ms`)
  if (parsed > 2 ** 31 - 1) return refuse(context, `is too long: ${value}`, 'write at most 24d')
  return parsed
}

/** A duration in milliseconds, at most 2³¹ − 1 (longer timers overflow in Node). */
export const duration = (minMs = 0) =>
  z
    .union([z.string(), z.number()], wrongType(durationFix))
    .transform((value, context) => toDuration(value, minMs, context))

/** A duration in milliseconds, or undefined for `never`. */
export const durationOrNever = (minMs = 0) =>
  z
    .union([z.string(), z.number()], wrongType(`${durationFix}, or never`))
    .transform((value, context) => (value === 'never' ? undefined : toDuration(value, minMs, context)))

/** A size in bytes within [min, max]. */
export const size = (min: number, max: number) =>
  z.union([z.string(), z.number()], wrongType(sizeFix)).transform((value, context) => {
    const parsed = parseSize(value)
    if (parsed === undefined) return refuse(context, `is not a size: ${JSON.stringify(value)}`, sizeFix)
    if (parsed < min) return refuse(context, `is too small: ${value}`, `write at least ${min}`)
    if (parsed > max) return refuse(context, `is too large: ${value}`, `write at most ${max}`)
    return parsed
  })

export const count = (min: number, max: number) =>
  z
    .int(wrongType(`write a whole number from ${min} to ${max}`))
    .min(min)
    .max(max)

export const port = () => count(1, 65_535)

export const host = () =>
  z.string(wrongType('write a host name or an IP address in quotes')).transform((value, context) => {
    const text = value.trim().replace(/^\[(.*)\]$/, '$1')
    if (/^[^\s/,@[\]]+$/.test(text) && (!text.includes(':') || /^[0-9a-fA-F:.]+$/.test(text))) return text
    return refuse(
      context,
      `is not a host name: ${JSON.stringify(value)}`,
      'write the host alone, without a port or scheme',
    )
  })

function toHostPort(text: string, context: Context, minPort: number, path: PropertyKey[] = []): HostPort {
  const parsed = parseHostPort(text, minPort)
  if (parsed) return parsed
  return refuse(context, `is not host:port: ${JSON.stringify(text)}`, hostPortFix, path)
}

export const hostPort = (minPort = 1) =>
  z.string(wrongType(hostPortFix)).transform((value, context) => toHostPort(value, context, minPort))

/** At least one `host:port`, as a list or separated by commas. */
export const hostPorts = () =>
  z
    .union([z.string(), z.array(z.string())], wrongType(hostPortFix))
    .transform((value, context): readonly HostPort[] => {
      const list = (typeof value === 'string' ? value.split(',') : value).map((text) => text.trim())
      const filled = list.filter((text) => text !== '')
      if (filled.length === 0) return refuse(context, 'is empty', hostPortFix)
      return filled.map((text, index) => toHostPort(text, context, 1, typeof value === 'string' ? [] : [index]))
    })

const nodeIdsFix = `write a range such as 0-9 or a list such as 1,2,3 (at most ${maxNodeIds} ids)`

export const nodeIds = () =>
  z
    .union([z.string(), z.int(), z.array(z.union([z.string(), z.int()]))], wrongType(nodeIdsFix))
    .transform((value, context): readonly number[] => {
      return parseNodeIds(value) ?? refuse(context, `is not a set of node ids: ${JSON.stringify(value)}`, nodeIdsFix)
    })

const dialFix = 'write a map such as {1: "10.0.0.1:9092"} or the text 1=10.0.0.1:9092,2=10.0.0.2:9092'

/** Node id → the address that is really dialled for it. */
export const dialMap = () =>
  z
    .union([z.string(), z.record(z.string(), z.string())], wrongType(dialFix))
    .transform((value, context): ReadonlyMap<number, HostPort> => {
      const entries = typeof value === 'string' ? parseDialList(value) : value
      const dial = new Map<number, HostPort>()
      if (!entries) return refuse(context, `is not a dial map: ${JSON.stringify(value)}`, dialFix)
      for (const [id, address] of Object.entries(entries)) {
        if (!/^\d{1,9}$/.test(id)) refuse(context, `is not a node id: ${JSON.stringify(id)}`, dialFix, [id])
        else dial.set(Number(id), toHostPort(address, context, 1, typeof value === 'string' ? [] : [id]))
      }
      return dial
    })
