import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { rulesDigest } from '../../../src/lifecycle/rules-digest.ts'

const digest = (...assignments: string[]) => rulesDigest(loadConfig({ upstream: 'k:9092', assignments }).config)
const topics = (json: object) => `topics=${JSON.stringify(json)}`

test('a digest of the rules: the same for the same rules, and blind to everything else', () => {
  const plain = digest(topics({ 'a.*': { layouts: {} } }))
  assert.match(plain, /^[0-9a-f]{12}$/)
  assert.equal(digest(topics({ 'a.*': { layouts: { order: 'key', goneAfter: '120s' } } }), 'limits.inFlight=7'), plain)
  const others = [
    digest(topics({ 'a.*': { layouts: { order: 'producer' } } })),
    digest(topics({ 'a.*': { layouts: { sealAfter: '1m' } } })),
    digest(topics({ 'b.*': { layouts: {} }, 'a.*': { layouts: {} } })),
    digest(topics({ 'a.*': { layouts: {} } }), 'groups={"g": {"gate": "position"}}'),
  ]
  assert.equal(new Set([plain, ...others]).size, 5)
})
