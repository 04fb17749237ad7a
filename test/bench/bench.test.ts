/** The bench works: every kind of load passes through a proxy, and a proxy that spoils it is found out. No timing is judged. */
import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { compilePrograms, compilerInstall, findCompiler, type Programs, runLoad } from './native.ts'
import { runScenarios } from './runner.ts'
import { scenarios } from './scenario.ts'
import type { Measures } from './measure.ts'
import { readTargets, type Target } from './target.ts'
import { startDummy, type Upstream } from './upstream.ts'

const names = ['direct', 'prototype', 'pipe']
const targets = readTargets().filter(({ name }) => names.includes(name))

const skip = findCompiler() === undefined && `no C compiler: ${compilerInstall}`

describe('bench', { skip }, () => {
  let programs: Programs
  before(async () => {
    programs = await compilePrograms()
  })

  const dummies = scenarios.filter(({ upstream, targets: own }) => upstream === 'dummy' && own === undefined)
  for (const scenario of dummies) {
    test(`one tiny round of ${scenario.name}`, async () => {
      const lines: string[] = []
      const say = (line: string) => void lines.push(line)
      const options = { programs, targets, rounds: 1, seconds: 0.2, say }
      const [result] = await runScenarios([scenario], options)
      assert.deepEqual(
        lines.filter((line) => line.includes('FAILED')),
        [],
      )
      assert.deepEqual(Object.keys(result?.rounds ?? {}), names)
      for (const name of ['prototype', 'pipe']) {
        const measures = Object.entries(result?.rounds[name]?.[0] ?? {})
        assert.ok(measures.length > 0, name)
        for (const [metric, value] of measures) assert.ok(Number.isFinite(value), `${name} ${metric}`)
      }
    })
  }
})

describe('filter', { skip }, () => {
  /** The targets of the scenario, from the sources instead of what was built. */
  const sources = readTargets()
    .filter(({ name }) => ['headgate', 'ranges'].includes(name))
    .map((target) => ({
      ...target,
      command: (target.command ?? '').replace('{root}/dist/main.js', '--import tsx {root}/src/main.ts'),
    }))
  const scenario = scenarios.filter(({ name }) => name === 'filter')

  async function measured(targets: readonly Target[]): Promise<{ measures: Measures[]; said: string }> {
    const lines: string[] = []
    const say = (line: string) => void lines.push(line)
    const programs = await compilePrograms()
    const [result] = await runScenarios(scenario, { programs, targets, rounds: 1, seconds: 0.2, say })
    return { measures: targets.map(({ name }) => result?.rounds[name]?.[0] ?? {}), said: lines.join('\n') }
  }

  test('one tiny round: half of every codec, and what is not filtered beside it', async () => {
    const { measures, said } = await measured(sources)
    assert.doesNotMatch(said, /FAILED/)
    const plain = ['plainCpuSecondsPerGb', 'plainP99Ms']
    assert.deepEqual(Object.keys(measures[0] ?? {}), plain)
    const expected = [...plain, 'noneMbPerCpuSecond', 'addedMbPerClient']
    for (const name of expected) assert.ok(Number.isFinite(measures[1]?.[name]), name)
  })

  test('a proxy that does not filter has no figure', async () => {
    const unfiltered = sources.map((target) => ({ ...target, name: 'ranges', features: true }))
    const plain = unfiltered.filter(({ template }) => template === 'headgate.yaml')
    assert.match((await measured(plain)).said, /FAILED.*of the records were delivered, not half/)
  })
})

describe('the load generator notices', { skip }, () => {
  let programs: Programs
  let dummy: Upstream
  before(async () => {
    programs = await compilePrograms()
    dummy = await startDummy(programs)
  })
  after(() => dummy.stop())

  /** A proxy that changes one byte of the second chunk or later that comes from the upstream, where `at` says. */
  async function spoiled(at: (chunk: Buffer) => number, options: string): Promise<Error> {
    const server = createServer((client) => {
      const broker = connect({ port: dummy.port, host: '127.0.0.1' })
      let chunks = 0
      client.on('data', (chunk) => broker.write(chunk)).on('close', () => broker.destroy())
      broker.on('data', (chunk) => {
        const index = at(chunk)
        if (++chunks === 2 && index >= 0) chunk.writeUInt8(chunk.readUInt8(index) ^ 1, index)
        client.write(chunk)
      })
      for (const socket of [client, broker]) socket.on('error', () => client.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const words = `--port ${port} --dummy --seconds 0.2 --warmup 0 ${options}`.split(' ')
    try {
      await runLoad([programs.load, ...words])
      return new Error('nothing')
    } catch (error) {
      return error as Error
    } finally {
      server.close()
    }
  }

  test('nothing, where nothing is wrong', async () => {
    const { message } = await spoiled(() => -1, '--api fetch --version 12')
    assert.equal(message, 'nothing')
  })

  test('a wrong correlation id', async () => {
    const { message } = await spoiled(() => 7, '--api produce --version 9')
    assert.match(message, /wrong correlation id/)
  })

  test('an error code', async () => {
    const { message } = await spoiled((chunk) => chunk.length - 27, '--api produce --version 9')
    assert.match(message, /error code|not what the upstream sent/)
  })

  test('a changed byte in the middle of a long answer', async () => {
    const { message } = await spoiled((chunk) => chunk.length - 1, '--api fetch --version 12')
    assert.match(message, /not what the upstream sent/)
  })

  test('a broker that closes', async () => {
    const words = `--port ${dummy.port} --api fetch --version 99 --seconds 0.2`.split(' ')
    await assert.rejects(runLoad([programs.load, ...words]), /closed/)
  })
})
