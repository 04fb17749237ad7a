/** `headgate/protocol` as another package gets it: packed, unpacked, imported by name, with nothing else installed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { builtMain, root } from '../../../scripts/setup/build.ts'

const program = `
import { apiKeys, codec, decodeRequestHeader, ProtocolError, Reader, requestFrame } from 'headgate/protocol'
const header = { apiKey: apiKeys.Metadata, apiVersion: 12, correlationId: 5, clientId: 'app' }
const frame = requestFrame(header, codec(apiKeys.Metadata), { topics: [{ name: 'orders' }] })
const reader = new Reader(frame, 4)
const { correlationId } = decodeRequestHeader(reader)
const { topics } = codec(apiKeys.Metadata).decodeRequest(reader, 12)
try {
  codec(apiKeys.Metadata).decodeRequest(new Reader(frame, 4, 9), 12)
} catch (error) {
  console.log(correlationId, topics[0].name, error instanceof ProtocolError, error.code)
}
`

test('the packed package gives headgate/protocol, without any dependency', async () => {
  await builtMain()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pack-'))
  try {
    const target = join(folder, 'node_modules/headgate')
    mkdirSync(target, { recursive: true })
    run('npm', ['pack', '--ignore-scripts', '--offline', '--pack-destination', folder], root)
    const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'))
    assert.ok(archive)
    run('tar', ['-xzf', join(folder, archive), '-C', target, '--strip-components=1'], folder)
    writeFileSync(join(folder, 'use.mjs'), program)
    assert.equal(run(process.execPath, ['use.mjs'], folder), '5 orders true HG_PROTOCOL_TRUNCATED\n')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

function run(command: string, args: readonly string[], cwd: string): string {
  const done = spawnSync(command, args, { cwd, encoding: 'utf8' })
  assert.equal(done.status, 0, `${command} ${args.join(' ')}\n${done.stderr}`)
  return done.stdout
}
