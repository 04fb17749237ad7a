import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiVersionsEditor } from '../../../../src/editors/api-versions/editor.ts'
import { apiByKey, apiKeys, apis } from '../../../../src/protocol/api-table.ts'
import type { ApiVersionsResponse } from '../../../../src/protocol/generated/18-api-versions.ts'
import { answeringRig, replyTo } from '../../../support/answering-rig.ts'
import { codecRequest, codecResponse, openResponse } from '../../../support/codec-frames.ts'
import { requestFrame, sized } from '../../../support/frames.ts'
import { Prng } from '../../../support/prng.ts'

const API = apiKeys.ApiVersions

/** A broker of the future: it knows APIs and versions that we do not. */
const future = [
  ...apis
    .filter(({ client }) => client)
    .map(({ key, minVersion, maxVersion }) => ({ apiKey: key, minVersion, maxVersion: maxVersion + 3 })),
  { apiKey: 7, minVersion: 0, maxVersion: 3 },
  { apiKey: 500, minVersion: 0, maxVersion: 0 },
]

async function shown(version: number, draft: object): Promise<ApiVersionsResponse> {
  const { reply } = await replyTo([new ApiVersionsEditor()], API, version, codecResponse(API, version, 0, draft))
  assert.ok(reply !== undefined)
  assert.equal(reply.readInt32BE(4), 77)
  return openResponse(API, version, reply) as ApiVersionsResponse
}

for (let version = 0; version <= 4; version++)
  test(`v${version}: what both know, and the broker's minimum versions`, async () => {
    const body = await shown(version, { apiKeys: future })
    for (const { apiKey, minVersion, maxVersion } of body.apiKeys) {
      assert.equal(apiByKey(apiKey)?.client, true)
      assert.equal(maxVersion, apiByKey(apiKey)?.maxVersion)
      assert.equal(minVersion, future.find((range) => range.apiKey === apiKey)?.minVersion)
    }
    assert.equal(body.apiKeys.length, apis.filter(({ client }) => client).length)
    assert.deepEqual(body.apiKeys.find(({ apiKey }) => apiKey === 0)?.minVersion, 0, 'librdkafka compresses only then')
  })

test('an older broker keeps its own maximum, and an API that it has only in versions we lack is left out', async () => {
  const body = await shown(3, {
    apiKeys: [
      { apiKey: 1, minVersion: 4, maxVersion: 11 },
      { apiKey: 3, minVersion: 90, maxVersion: 91 },
      { apiKey: 78, minVersion: 0, maxVersion: 0 },
      { apiKey: 18, minVersion: 0, maxVersion: 3 },
    ],
  })
  assert.deepEqual(
    body.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
    [
      [1, 4, 11],
      [18, 0, 3],
    ],
  )
})

test('features pass, except those that steer clients to an API that is withheld', async () => {
  const finalized = ['group.version', 'share.version', 'transaction.version', 'metadata.version']
  const draft = {
    supportedFeatures: finalized.map((name) => ({ name, minVersion: 0, maxVersion: 1 })),
    finalizedFeaturesEpoch: 12,
    finalizedFeatures: finalized.map((name) => ({ name, minVersionLevel: 0, maxVersionLevel: 1 })),
    zkMigrationReady: true,
  }
  const full = await shown(4, { ...draft, apiKeys: future })
  assert.deepEqual(
    full.finalizedFeatures.map(({ name }) => name),
    finalized,
  )
  assert.equal(full.finalizedFeaturesEpoch, 12)
  assert.equal(full.zkMigrationReady, true)
  const without = future.filter(({ apiKey }) => apiKey !== apiKeys.ShareFetch)
  const less = await shown(4, { ...draft, apiKeys: without })
  assert.deepEqual(
    less.finalizedFeatures.map(({ name }) => name),
    finalized.filter((name) => name !== 'share.version'),
  )
  assert.deepEqual(
    less.supportedFeatures.map(({ name }) => name),
    finalized.filter((name) => name !== 'share.version'),
  )
})

test('a request that is too new is answered in version 0 with error 35, and the next one goes on', async () => {
  const { rig, client } = await answeringRig([new ApiVersionsEditor()], [codecResponse(API, 4, 0, { apiKeys: future })])
  client.send(
    requestFrame({
      apiKey: API,
      apiVersion: 5,
      correlationId: 1,
      flexible: true,
      body: Buffer.from('\x04abc\x04def\x00'),
    }),
  )
  await rig.run(() => client.frames.length === 1)
  const refused = openResponse(API, 0, client.frames[0] ?? Buffer.alloc(0)) as ApiVersionsResponse
  assert.equal(client.frames[0]?.readInt32BE(4), 1)
  assert.equal(refused.errorCode, 35)
  assert.deepEqual(
    refused.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
    [[18, 0, 4]],
  )
  client.send(codecRequest(API, 4, 2, { clientSoftwareName: 'franz-go', clientSoftwareVersion: '1.22' }))
  await rig.run(() => client.frames.length === 2)
  const body = openResponse(API, 4, client.frames[1] ?? Buffer.alloc(0)) as ApiVersionsResponse
  assert.ok(body.errorCode === 0 && body.apiKeys.length > 10)
  assert.equal(rig.broker.frames.length, 1, 'the broker saw only what it may know')
  assert.equal(rig.connection.instance?.softwareName, 'franz-go')
  assert.equal(rig.connection.instance?.softwareVersion, '1.22')
  assert.deepEqual(rig.meter.reasons, [])
})

test('a broker that is older than the request answers 35 in version 0, which is passed on', async () => {
  const frame = codecResponse(API, 0, 0, { errorCode: 35, apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 2 }] })
  const { reply } = await replyTo([new ApiVersionsEditor()], API, 4, frame)
  assert.ok(reply !== undefined)
  const body = openResponse(API, 0, reply) as ApiVersionsResponse
  assert.equal(body.errorCode, 35)
  assert.deepEqual(
    body.apiKeys.map(({ maxVersion }) => maxVersion),
    [2],
  )
})

test('an answer that cannot be read closes the connection, cut anywhere', async () => {
  for (let version = 0; version <= 4; version++) {
    const frame = codecResponse(API, version, 0, { apiKeys: future.slice(0, 3) })
    for (let end = 8; end < frame.length; end++) {
      const { reply, rig } = await replyTo(
        [new ApiVersionsEditor()],
        API,
        version,
        sized(Buffer.from(frame.subarray(0, end))),
      )
      assert.equal(reply, undefined, `v${version} cut at ${end}`)
      assert.deepEqual(rig.meter.reasons, ['malformed_response'], `v${version} cut at ${end}`)
    }
  }
  for (let seed = 1; seed < 100; seed++) {
    const prng = new Prng(seed)
    const frame = sized(Buffer.concat([Buffer.alloc(8), prng.bytes(prng.below(60))]))
    const { rig } = await replyTo([new ApiVersionsEditor()], API, seed % 5, frame)
    assert.ok(
      rig.meter.reasons.every((reason) => reason === 'malformed_response'),
      `seed ${seed}: ${rig.meter.reasons.join()}`,
    )
  }
})

test('a request whose body is garbage is left to the broker', async () => {
  const { rig, client } = await answeringRig([new ApiVersionsEditor()], [codecResponse(API, 3, 0, { apiKeys: future })])
  client.send(
    requestFrame({
      apiKey: API,
      apiVersion: 3,
      correlationId: 9,
      flexible: true,
      body: Buffer.from([0xff, 0xff, 0xff]),
    }),
  )
  await rig.run(() => client.frames.length === 1)
  assert.equal(rig.broker.frames.length, 1)
})
