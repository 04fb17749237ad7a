/**
 * Compares every codec with Kafka's own serialisers, byte for byte, in one JVM:
 *   tsx test/oracle/run.ts [--runs 12] [--seed N] [--only TEXT]
 * Per cell (message and version): the message of defaults, random values with shrinking, values at the limits of their
 * types; and each message read in a newer version and written in an older one. Ends with `N passed, N failed`.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { ProtocolError } from '../../src/protocol/errors.ts'
import { apiKeys, apis, requestHeaderVersion, responseHeaderVersion } from '../../src/protocol/api-table.ts'
import {
  decodeRequestHeader,
  decodeResponseHeader,
  encodeRequestHeader,
  encodeResponseHeader,
} from '../../src/protocol/headers.ts'
import { Reader } from '../../src/protocol/reader.ts'
import { Writer } from '../../src/protocol/writer.ts'
import { kafkaVersions, missingTool, oracleArtifacts } from './artifacts.ts'
import type { Cell } from './cells.ts'
import { allCells, atVersion } from './cells.ts'
import { difference } from './compare.ts'
import { JavaRefusal, Jvm } from './jvm.ts'
import type { JavaMessage } from './jvm.ts'
import { extremeOf, extremes, valuesOf } from './values.ts'
import type { Size } from './values.ts'

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '12' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    only: { type: 'string', default: '' },
  },
})
const runs = Number(options.runs)
const seed = Number(options.seed)

interface Listed {
  readonly key: number
  readonly name: string
  readonly version: number
  readonly headers: readonly [number, number]
}

class Oracle {
  passed = 0
  readonly failures: string[] = []
  private readonly jvm: Jvm
  private readonly cells = allCells()
  /** Per Kafka version: what a broker of it lists. */
  private readonly listed: Listed[][] = []

  constructor(jvm: Jvm) {
    this.jvm = jvm
  }

  async run(): Promise<void> {
    for (const kafka of kafkaVersions.keys()) this.listed.push(parseList(await this.jvm.list(kafka)))
    if (options.only === '') {
      this.coverage()
      for (const side of ['request', 'response'] as const) {
        await this.check(`${side} headers`, () => this.headers(side))
      }
    }
    const chosen = this.cells.filter((cell) => cell.name.includes(options.only))
    for (const cell of chosen) {
      await this.check(`${cell.name}, defaults`, () => this.defaults(cell))
      await this.check(`${cell.name}, random`, () => this.random(cell, 'tame'))
      await this.check(`${cell.name}, limits`, () => this.random(cell, 'wild'))
      await this.check(`${cell.name}, written from a newer version`, () => this.convert(cell))
    }
    const sides = chosen.filter((cell) => cell.key >= 0).length
    console.log(`${chosen.length} cells (${sides} of APIs, ${chosen.length - sides} of embedded formats and records)`)
  }

  private async check(name: string, run: () => Promise<void> | void): Promise<void> {
    try {
      await run()
      this.passed++
    } catch (error) {
      this.failures.push(name)
      console.log(`not ok ${name}\n  ${explain(error).replaceAll('\n', '\n  ')}`)
    }
  }

  /** Nothing that a broker's listener answers may be missing, and headers must have Kafka's versions. */
  private coverage(): void {
    for (const [kafka, list] of this.listed.entries()) {
      for (const { key, name, version, headers } of list) {
        const cell = `${name} v${version} of Kafka ${kafkaVersions[kafka] ?? ''}`
        // Kafka 3.9 had early drafts of share groups under keys that 4.x answers only from version 1 on
        if (kafka === 1 && key >= 76 && version === 0 && !this.has(key, version)) continue
        void this.check(cell, () => {
          assert.ok(this.has(key, version), 'has no codec')
          assert.deepEqual([requestHeaderVersion(key, version), responseHeaderVersion(key, version)], headers)
        })
      }
    }
    const current = new Set(this.listed[0]?.map(({ key }) => key))
    void this.check('the table has no other client APIs', () =>
      assert.deepEqual(
        apis.filter((api) => api.client && !current.has(api.key)),
        [],
      ),
    )
  }

  private has(key: number, version: number): boolean {
    return this.cells.filter((cell) => cell.key === key && cell.version === version).length === 2
  }

  /** Headers of every version, by an API that uses it. */
  private async headers(side: 'request' | 'response'): Promise<void> {
    const type = `org.apache.kafka.common.message.${side === 'request' ? 'Request' : 'Response'}HeaderData`
    const tags = fc.constantFrom(undefined, [{ tag: 3, data: Buffer.from('x') }])
    const ids = fc.tuple(fc.integer(), fc.option(fc.string({ unit: 'grapheme' })), tags)
    for (const [apiKey, apiVersion] of [
      [apiKeys.ControlledShutdown, 0],
      [apiKeys.Metadata, 8],
      [apiKeys.Metadata, 9],
      [apiKeys.ApiVersions, 4],
    ] as const) {
      const version = (side === 'request' ? requestHeaderVersion : responseHeaderVersion)(apiKey, apiVersion)
      const flexible = version === (side === 'request' ? 2 : 1)
      const property = fc.asyncProperty(ids, async ([correlationId, name, unknown]) => {
        const unknownTags = flexible && unknown !== undefined ? { unknownTags: unknown } : {}
        const clientId = side === 'request' && version === 0 ? null : name
        const header = { apiKey, apiVersion, correlationId, clientId, ...unknownTags }
        const writer = new Writer(8)
        if (side === 'request') encodeRequestHeader(writer, header)
        else encodeResponseHeader(writer, header, apiKey, apiVersion)
        const bytes = writer.finish()
        const java = await this.jvm.reread(version === 0 && side === 'request' ? 1 : 0, type, version, bytes)
        assert.equal(bytes.toString('hex'), java.bytes.toString('hex'))
        const reader = new Reader(bytes)
        const shown = java.json as Readonly<Record<string, unknown>>
        if (side === 'request') {
          assert.deepEqual(decodeRequestHeader(reader), header)
          assert.deepEqual(
            [shown['requestApiKey'], shown['requestApiVersion'], shown['correlationId'], shown['clientId'] ?? null],
            [apiKey, apiVersion, correlationId, clientId],
          )
        } else {
          assert.deepEqual(decodeResponseHeader(reader, apiKey, apiVersion), { correlationId, ...unknownTags })
          assert.equal(shown['correlationId'], correlationId)
        }
        reader.expectEnd()
      })
      await fc.assert(property, { seed, numRuns: runs })
    }
  }

  /** Which Kafka knows this cell: the newest that does. */
  private kafkaOf(cell: Cell): number {
    if (cell.key < 0) return 0
    return this.listed.findIndex((list) => list.some((one) => one.key === cell.key && one.version === cell.version))
  }

  private async defaults(cell: Cell): Promise<void> {
    const java = await this.jvm.defaults(this.kafkaOf(cell), cell.javaClass, cell.version)
    this.equal(cell, {}, java)
  }

  private async random(cell: Cell, size: Size): Promise<void> {
    const property = fc.asyncProperty(valuesOf(cell, size), async (value) => {
      const bytes = encode(cell, value)
      const java = await this.jvm.reread(this.kafkaOf(cell), cell.javaClass, cell.version, bytes)
      this.equal(cell, value, java)
      assert.deepEqual(decode(cell, java.bytes), value)
    })
    const examples = size === 'wild' ? extremes.map((extreme): [object] => [extremeOf(cell, extreme)]) : []
    await fc.assert(property, { seed, numRuns: runs + examples.length, examples })
  }

  /** Our bytes are Java's, ours decode to what Java's JSON shows, and encoding again changes nothing. */
  private equal(cell: Cell, value: object, java: JavaMessage): void {
    const bytes = encode(cell, value)
    assert.equal(bytes.toString('hex'), java.bytes.toString('hex'))
    const decoded = decode(cell, bytes)
    assert.equal(difference(cell.message.root, cell.version, decoded, java.json), undefined)
    assert.equal(encode(cell, decoded).toString('hex'), bytes.toString('hex'))
  }

  /** What an older version drops, keeps or refuses is what Java drops, keeps or refuses. */
  private async convert(cell: Cell): Promise<void> {
    const kafka = this.kafkaOf(cell)
    const newest = this.newest(cell, kafka)
    if (newest === undefined || newest.version === cell.version) return
    const property = fc.asyncProperty(valuesOf(newest, 'tame'), async (value) => {
      const bytes = encode(newest, value)
      const java = await this.jvm
        .convert(kafka, cell.javaClass, newest.version, cell.version, bytes)
        .catch((error: unknown) => {
          if (error instanceof JavaRefusal) return error
          throw error
        })
      let ours: Buffer | ProtocolError
      try {
        ours = encode(cell, value)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        ours = error
      }
      if (java instanceof JavaRefusal) assert.ok(ours instanceof ProtocolError, `only Java refuses: ${java.message}`)
      else if (ours instanceof ProtocolError) assert.fail(`only we refuse: ${ours.message}`)
      else assert.equal(ours.toString('hex'), java.bytes.toString('hex'))
    })
    await fc.assert(property, { seed, numRuns: Math.ceil(runs / 2) })
  }

  private newest(cell: Cell, kafka: number): Cell | undefined {
    if (cell.key < 0) return atVersion(this.cells, cell, cell.message.versions.to)
    const versions = this.listed[kafka]?.filter((one) => one.key === cell.key).map((one) => one.version) ?? []
    return atVersion(this.cells, cell, Math.max(...versions))
  }
}

/** What failed and, below it, the smallest value that fast-check found. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.cause.message}\n${error.message}` : error.message
}

function parseList(text: string): Listed[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [key, name, version, request, response] = line.split(' ')
      return {
        key: Number(key),
        name: name ?? '',
        version: Number(version),
        headers: [Number(request), Number(response)],
      }
    })
}

function encode(cell: Cell, value: object): Buffer {
  const writer = new Writer(64)
  cell.encode(writer, value)
  return writer.finish()
}

function decode(cell: Cell, bytes: Buffer): object {
  const reader = new Reader(bytes)
  const value = cell.decode(reader)
  reader.expectEnd()
  return value
}

const missing = missingTool()
if (missing !== undefined) {
  console.log(`skipped: ${missing}`)
  console.log('0 passed, 0 failed, 1 skipped')
  process.exitCode = process.env['CI'] === 'true' ? 1 : 0
} else {
  const jvm = new Jvm(await oracleArtifacts((line) => console.log(line)))
  const oracle = new Oracle(jvm)
  console.log(`seed ${seed}, ${runs} runs per cell (repeat with: tsx test/oracle/run.ts --seed ${seed})`)
  try {
    await oracle.run()
  } finally {
    jvm.stop()
  }
  console.log(`${oracle.passed} passed, ${oracle.failures.length} failed`)
  process.exitCode = oracle.failures.length === 0 ? 0 : 1
}
