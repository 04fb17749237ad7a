/**
 * What the image does as a sidecar, without a container engine: the packed app, installed without development packages,
 * runs with the sidecar's configuration as another user on a read-only root file system, carries traffic, is healthy, and
 * ends on SIGTERM.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import { parseAllDocuments } from 'yaml'
import { freePorts } from '../../../scripts/kafka/ports.ts'
import { keep, removeFolder, temporaryFolder } from '../../../scripts/kafka/keeper.ts'
import { builtMain } from '../../../scripts/setup/build.ts'
import { run } from '../../../scripts/setup/run.ts'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { until } from '../../support/until.ts'
import { getJson, Process, status } from '../headgate.ts'
import { missing, root } from './tools.ts'

/** Every mount read-only in a mount namespace of its own, then the command as user 10001 without any privilege. */
const confined = [
  'mount --make-rprivate / && mount --bind / /',
  'for at in $(cut -d" " -f5 /proc/self/mountinfo | sort -u); do mount -o remount,bind,ro "$at" 2>/dev/null; done',
  'cd /',
  'exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"',
].join('\n')

function confine(command: string, args: readonly string[]): [string, string[]] {
  return ['unshare', ['--mount', 'sh', '-c', confined, 'sh', command, ...args]]
}

function canConfine(): boolean {
  const [command, args] = confine('sh', ['-c', 'test "$(id -u)" = 10001 && ! touch /tmp/headgate-probe 2>/dev/null'])
  return spawnSync(command, args).status === 0
}

test('the packed app, as user 10001 on a read-only root', { timeout: 480_000 }, async (t) => {
  if (!canConfine()) {
    missing(
      t,
      'permission to make a mount namespace',
      'run the test as root on Linux (unshare and setpriv are in util-linux)',
    )
    return
  }
  const folder = temporaryFolder('packed')
  t.after(() => removeFolder(folder))
  chmodSync(folder, 0o755)
  await builtMain()
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root })
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  const install = [
    'install',
    '--omit=dev',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    join(folder, archive),
  ]
  await run('npm', [...install, '--prefix', folder], { cwd: folder })
  const main = join(folder, 'node_modules/headgate/dist/main.js')

  const [map] = parseAllDocuments(readFileSync(join(root, 'deploy/kubernetes/sidecar.yaml'), 'utf8'))
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, (map?.toJS() as { data: Record<string, string> }).data['headgate.yaml'] ?? '')
  const broker = await FakeBroker.start(await nodeRuntime())
  t.after(() => broker.stop())
  const [bootstrapPort = 0, basePort = 0, , adminPort = 0] = await freePorts(4)
  const env = {
    PATH: process.env['PATH'] ?? '',
    UPSTREAM_BOOTSTRAP: broker.bootstrap.join(','),
    HEADGATE_LISTENERS_0_BOOTSTRAP_PORT: String(bootstrapPort),
    HEADGATE_LISTENERS_0_BASE_PORT: String(basePort),
    HEADGATE_LISTENERS_0_NODE_IDS: '0-1',
    HEADGATE_ADMIN_BIND: `127.0.0.1:${adminPort}`,
  }
  const [command, args] = confine(process.execPath, [main, 'serve', '--config', config])
  const served = new Process(keep(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }))
  let ended = false
  void served.finished.then(() => (ended = true))
  await until(async () => {
    if (ended) throw new Error(`headgate ended: ${served.stderr}${served.stdout}`)
    return (await status(`http://127.0.0.1:${adminPort}/readyz`)) === 200
  })

  const kafka = new Kafka({ clientId: 'packed', brokers: [`127.0.0.1:${bootstrapPort}`], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  const producer = kafka.producer()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'packed' }] })
  await producer.connect()
  await producer.send({ topic: 'packed', messages: [{ value: 'one' }, { value: 'two' }] })
  assert.equal((await admin.fetchTopicOffsets('packed'))[0]?.high, '2')
  const clients = (await getJson(`http://127.0.0.1:${adminPort}/api/clients`)) as { recognisedBy: string }[]
  assert.ok(
    clients.length >= 2 && clients.every(({ recognisedBy }) => recognisedBy === 'address'),
    JSON.stringify(clients),
  )
  await producer.disconnect()
  await admin.disconnect()

  const health = spawn(...confine(process.execPath, [main, 'healthcheck']), { env, stdio: 'ignore' })
  assert.equal(await new Promise((resolve) => health.on('close', resolve)), 0)
  served.kill('SIGTERM')
  assert.deepEqual(await served.finished, { code: 0, signal: null })
  assert.equal(served.stderr, '')
})
