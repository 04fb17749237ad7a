import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type LoadOptions, loadConfig } from '../../../src/config/load.ts'
import { ConfigError } from '../../../src/config/problems.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-config-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'c.yaml')

function load(yaml: string, options: LoadOptions = {}) {
  writeFileSync(file, yaml)
  return loadConfig({ file, ...options })
}

/** The problems as lines, with the file's path cut down to `c.yaml`. */
function problems(yaml: string, options: LoadOptions = {}): string[] {
  try {
    load(yaml, options)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.replaceAll(file, 'c.yaml').split('\n')
  }
  return []
}

const minimal = 'upstream:\n  bootstrap: kafka:9092\n'

test('the bootstrap address alone is a whole configuration', () => {
  const { config } = loadConfig({ environment: { UPSTREAM_BOOTSTRAP: 'a:9092, [::1]:9093' } })
  assert.deepEqual(config.upstream.bootstrap, [
    { host: 'a', port: 9092 },
    { host: '::1', port: 9093 },
  ])
  const listener = config.listeners[0]
  assert.equal(config.listeners.length, 1)
  assert.deepEqual(listener?.nodeIds, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  assert.deepEqual([listener?.bootstrapPort, listener?.basePort, listener?.advertisePort], [19_092, 19_093, 19_093])
  assert.deepEqual([listener?.bind, listener?.advertise], ['127.0.0.1', '127.0.0.1'])
  assert.equal(config.limits.requestBytes, 104_857_600)
  assert.equal(config.limits.headerTimeoutMs, 10_000)
})

test('the result cannot be changed', () => {
  const { config } = load(minimal)
  assert.ok(
    Object.isFrozen(config) && Object.isFrozen(config.listeners[0]) && Object.isFrozen(config.upstream.bootstrap),
  )
})

test('later sources win, and each value knows its source', () => {
  const yaml = `${minimal}limits:\n  inFlight: 5\n  connections: 6\n  holdFrames: 7\n`
  const { config, sources } = load(yaml, {
    environment: {
      HEADGATE_LIMITS_CONNECTIONS: '60',
      HEADGATE_LIMITS_HOLD_FRAMES: '70',
      HEADGATE_LISTENERS_0_BASE_PORT: '2000',
    },
    assignments: ['limits.holdFrames=700'],
    upstream: 'flag:1',
  })
  assert.deepEqual([config.limits.inFlight, config.limits.connections, config.limits.holdFrames], [5, 60, 700])
  assert.deepEqual(config.upstream.bootstrap, [{ host: 'flag', port: 1 }])
  assert.equal(config.listeners[0]?.basePort, 2000)
  assert.equal(sources.get('limits.inFlight'), `${file}:4`)
  assert.equal(sources.get('limits.connections'), 'environment HEADGATE_LIMITS_CONNECTIONS')
  assert.equal(sources.get('limits.holdFrames'), '--set limits.holdFrames')
  assert.equal(sources.get('upstream.bootstrap'), '--upstream')
  assert.equal(sources.get('log.level'), undefined)
})

test('the long name of the bootstrap variable wins over the short one', () => {
  const { config } = loadConfig({ environment: { UPSTREAM_BOOTSTRAP: 'a:1', HEADGATE_UPSTREAM_BOOTSTRAP: 'b:2' } })
  assert.deepEqual(config.upstream.bootstrap, [{ host: 'b', port: 2 }])
})

test('the image’s bind address is used only where nobody said otherwise', () => {
  const yaml = `${minimal}listeners:\n  - name: a\n  - {name: b, bind: 127.0.0.1, basePort: 21000}\n  - {name: c, mode: loopback, basePort: 22000}\n`
  const { config } = load(yaml, { environment: { HEADGATE_DEFAULT_BIND: '0.0.0.0' } })
  assert.deepEqual(
    config.listeners.map((listener) => [listener.bind, listener.advertise]),
    [
      ['0.0.0.0', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.1'],
      ['0.0.0.0', '127.0.0.1'],
    ],
  )
  assert.deepEqual(config.admin.bind, { host: '0.0.0.0', port: 9190 })
})

test('errors name line, key and fix', async (t) => {
  const cases: [name: string, yaml: string, expected: string[]][] = [
    [
      'unknown key, nearest name',
      `${minimal}limits:\n  inflights: 4\n`,
      ['c.yaml:4: limits.inflights is not a setting (fix: did you mean inFlight?)'],
    ],
    [
      'unknown key in a list entry',
      `${minimal}listeners:\n  - name: a\n    adverticed: x\n`,
      ['c.yaml:5: listeners[0].adverticed is not a setting (fix: did you mean advertise?)'],
    ],
    [
      'unknown key with no near name',
      `${minimal}log:\n  colour: red\n`,
      ['c.yaml:4: log.colour is not a setting (fix: known here: level, format)'],
    ],
    [
      'several at once',
      `${minimal}log:\n  level: loud\nadmin:\n  allowChanges: yes please\n`,
      [
        'c.yaml:6: admin.allowChanges has the wrong type (fix: write true or false)',
        'c.yaml:4: log.level is not a known value (fix: use one of: debug, info, warn, error, silent)',
      ],
    ],
    [
      'duration',
      `${minimal}shutdown:\n  delay: 5 sec\n`,
      [
        'c.yaml:4: shutdown.delay is not a duration: "5 sec" (fix: write a duration such as 500ms, 10s or 2m (a plain number counts milliseconds))',
      ],
    ],
    [
      'size',
      `${minimal}limits:\n  requestBytes: 100 apples\n`,
      [
        'c.yaml:4: limits.requestBytes is not a size: "100 apples" (fix: write a size such as 64KiB or 100MiB (a plain number counts bytes))',
      ],
    ],
    [
      'delay longer than grace',
      `${minimal}shutdown:\n  delay: 30s\n`,
      ['c.yaml:4: shutdown.delay is longer than shutdown.grace (fix: make it shorter, or grace longer)'],
    ],
    [
      'bootstrap without a port',
      'upstream:\n  bootstrap:\n    - kafka:9092\n    - kafka\n',
      [
        'c.yaml:4: upstream.bootstrap[1] is not host:port: "kafka" (fix: write host:port, for example kafka-1:9092 (IPv6: [::1]:9092))',
      ],
    ],
    [
      'no upstream at all',
      'log:\n  level: info\n',
      [
        'upstream.bootstrap is not set (fix: set it in the file, as UPSTREAM_BOOTSTRAP in the environment, or with --upstream host:port)',
      ],
    ],
    [
      'two listeners on the same ports',
      `${minimal}listeners:\n  - {name: a}\n  - {name: b, basePort: 19095}\n`,
      [
        'c.yaml:5: listeners[1].bootstrapPort makes the bootstrap port of b and node 1 of a both listen on 127.0.0.1:19094 (fix: set basePort (and bootstrapPort) of listener b to free ports)',
      ],
    ],
    [
      'ports beyond 65535',
      `${minimal}listeners:\n  - basePort: 65530\n`,
      [
        'c.yaml:4: listeners[0].basePort puts node 6 of default at port 65536, and the last is 65535 (fix: choose a lower basePort or fewer nodeIds)',
      ],
    ],
    [
      'sni',
      `${minimal}listeners:\n  - mode: sni\n`,
      ['c.yaml:4: listeners[0].mode sni is not built yet (fix: use ports or loopback)'],
    ],
    [
      'loopback with an address',
      `${minimal}listeners:\n  - mode: loopback\n    advertise: example\n`,
      ['c.yaml:5: listeners[0].advertise does not go with mode: loopback (fix: remove advertise, or use mode: ports)'],
    ],
    [
      'an empty section',
      `${minimal}limits:\n`,
      ['c.yaml:3: limits has the wrong type (fix: write a map of keys (key: value, indented))'],
    ],
    [
      'a list instead of a map',
      '- a\n',
      ['c.yaml:1 does not hold a map of settings (fix: start with a key, for example upstream:)'],
    ],
  ]
  for (const [name, yaml, expected] of cases)
    await t.test(name, () => assert.deepEqual(problems(yaml).sort(), expected.sort()))
})

test('broken YAML and a missing file say where', () => {
  assert.match(
    problems('upstream:\n\tbootstrap: x:1\n')[0] ?? '',
    /^c\.yaml:2 is not valid YAML: .*\(fix: indent with spaces/,
  )
  assert.match(
    problems(`${minimal}upstream: {}\n`)[0] ?? '',
    /^c\.yaml:3 is not valid YAML: .*\(fix: remove one of the two\)/,
  )
  assert.throws(() => loadConfig({ file: join(folder, 'none.yaml') }), /none\.yaml cannot be read: ENOENT.*--config/)
})

test('a wrong environment variable is named, one made by Kubernetes is not', () => {
  const environment = {
    HEADGATE_SERVICE_HOST: '10.0.0.1',
    HEADGATE_SERVICE_PORT_KAFKA: '19092',
    HEADGATE_PORT: 'tcp://10.0.0.1:19092',
    HEADGATE_PORT_19092_TCP_ADDR: '10.0.0.1',
    HEADGATE_CACHE: '/somewhere',
    HEADGATE_LIMITS_INFLIGHT: '3',
  }
  assert.deepEqual(problems(minimal, { environment }), [
    'environment HEADGATE_LIMITS_INFLIGHT is not a setting (fix: did you mean HEADGATE_LIMITS_IN_FLIGHT?)',
  ])
  assert.deepEqual(problems(minimal, { environment: { HEADGATE_LIMITS_IN_FLIGHT: 'many' } }), [
    'environment HEADGATE_LIMITS_IN_FLIGHT: limits.inFlight has the wrong type (fix: write a whole number from 1 to 100000)',
  ])
})

test('a wrong --set is named', () => {
  assert.deepEqual(problems(minimal, { assignments: ['limits.inflight=3', 'nonsense', 'log.level=loud'] }), [
    '--set limits.inflight is not a setting (fix: did you mean limits.inFlight?)',
    '--set is not key=value: nonsense (fix: write --set limits.inFlight=64)',
  ])
  assert.deepEqual(problems(minimal, { assignments: ['listeners.0.basePort=1', 'listeners[2].adverticed=a'] }), [
    '--set listeners.0.basePort is not a setting (fix: did you mean listeners[0].basePort?)',
    '--set listeners[2].adverticed is not a setting (fix: did you mean listeners[2].advertise?)',
  ])
})

test('dial maps and node ids in both spellings', () => {
  const { config } = load(`${minimal}listeners:\n  - nodeIds: [1, 3-5]\n    dial: {1: "x:1"}\n`, {
    environment: {
      HEADGATE_LISTENERS_1_DIAL: '7=y:2,8=[::1]:3',
      HEADGATE_LISTENERS_1_NAME: 'b',
      HEADGATE_LISTENERS_1_BASE_PORT: '30000',
    },
  })
  assert.deepEqual(config.listeners[0]?.nodeIds, [1, 3, 4, 5])
  assert.deepEqual(config.listeners[0]?.dial.get(1), { host: 'x', port: 1 })
  assert.deepEqual(config.listeners[1]?.dial.get(8), { host: '::1', port: 3 })
})
