/** Header versions by API, headers both ways, and the error table. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  apiByKey,
  apiKeys,
  apiName,
  apis,
  carriesAddresses,
  isKnownVersion,
  requestHeaderVersion,
  responseHeaderVersion,
} from '../../../src/protocol/api-table.ts'
import { errorCodes, errorName, isRetriable } from '../../../src/protocol/error-codes.ts'
import {
  decodeRequestHeader,
  decodeResponseHeader,
  encodeRequestHeader,
  encodeResponseHeader,
} from '../../../src/protocol/headers.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'

test('header versions follow the first flexible version, with the two exceptions', () => {
  assert.equal(requestHeaderVersion(apiKeys.Produce, 8), 1)
  assert.equal(requestHeaderVersion(apiKeys.Produce, 9), 2)
  assert.equal(responseHeaderVersion(apiKeys.Produce, 9), 1)
  assert.equal(requestHeaderVersion(apiKeys.ApiVersions, 3), 2)
  assert.equal(responseHeaderVersion(apiKeys.ApiVersions, 3), 0)
  assert.equal(requestHeaderVersion(apiKeys.ControlledShutdown, 0), 0)
  assert.equal(requestHeaderVersion(apiKeys.SaslHandshake, 1), 1)
  assert.equal(responseHeaderVersion(apiKeys.SaslHandshake, 1), 0)
})

test('headers are read back as they were written, for every API and version', () => {
  for (const api of apis) {
    for (let apiVersion = api.minVersion; apiVersion <= api.maxVersion; apiVersion++) {
      const clientId = requestHeaderVersion(api.key, apiVersion) === 0 ? null : 'rdkafka'
      const header = { apiKey: api.key, apiVersion, correlationId: -7, clientId }
      const writer = new Writer()
      encodeRequestHeader(writer, header)
      const reader = new Reader(writer.finish())
      assert.deepEqual(decodeRequestHeader(reader), header)
      reader.expectEnd()

      writer.reset()
      encodeResponseHeader(writer, { correlationId: 9 }, api.key, apiVersion)
      const back = new Reader(writer.finish())
      assert.deepEqual(decodeResponseHeader(back, api.key, apiVersion), { correlationId: 9 })
      back.expectEnd()
    }
  }
})

test('unknown header tags are kept', () => {
  const unknownTags = [{ tag: 5, data: Buffer.from('xyz') }]
  const header = { apiKey: apiKeys.Fetch, apiVersion: 12, correlationId: 1, clientId: null, unknownTags }
  const writer = new Writer()
  encodeRequestHeader(writer, header)
  assert.deepEqual(decodeRequestHeader(new Reader(writer.finish())), header)
})

test('the table knows versions, names and who carries addresses', () => {
  assert.equal(apiName(1), 'Fetch')
  assert.equal(apiName(999), 'api 999')
  assert.equal(apiByKey(-1), undefined)
  assert.ok(isKnownVersion(0, 0))
  assert.ok(!isKnownVersion(0, 14))
  assert.ok(!isKnownVersion(0, -1))
  assert.deepEqual(
    apis.filter((api) => api.addresses).map((api) => api.name),
    [
      'Produce',
      'Fetch',
      'Metadata',
      'FindCoordinator',
      'DescribeQuorum',
      'DescribeCluster',
      'ShareFetch',
      'ShareAcknowledge',
    ],
  )
  assert.ok(!carriesAddresses(apiKeys.Fetch, 15))
  assert.ok(carriesAddresses(apiKeys.Fetch, 16))
})

test('error codes have names and know whether to try again', () => {
  assert.equal(errorName(errorCodes.NOT_LEADER_OR_FOLLOWER), 'NOT_LEADER_OR_FOLLOWER')
  assert.equal(errorName(0), 'NONE')
  assert.equal(errorName(31000), 'ERROR_31000')
  assert.ok(isRetriable(errorCodes.NOT_LEADER_OR_FOLLOWER))
  assert.ok(!isRetriable(errorCodes.UNSUPPORTED_VERSION))
  assert.ok(!isRetriable(31000))
})
