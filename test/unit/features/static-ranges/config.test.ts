import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../../../src/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-ranges-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'c.yaml')

/** Loads a configuration whose group `orders` has these lines of rules; they begin in line 6. */
function load(...rules: string[]) {
  const lines = ['upstream:', '  bootstrap: kafka:9092', 'groups:', '  orders:', '    ranges:']
  writeFileSync(file, [...lines, ...rules.map((rule) => `      - ${rule}`), ''].join('\n'))
  return loadConfig({ file }).config
}

function problem(...rules: string[]): string {
  try {
    load(...rules)
  } catch (error) {
    return (error as Error).message.replaceAll(file, 'c.yaml')
  }
  return ''
}

test('ranges are read, bounds included, single buckets too', () => {
  const { groups } = load("{clientId: a, keys: [0-7FFF, '9000']}", '{clientId: b, keys: [c000-ffff]}')
  assert.deepEqual(groups[0]?.ranges, [
    {
      clientId: 'a',
      ranges: [
        { first: 0, last: 0x7fff },
        { first: 0x9000, last: 0x9000 },
      ],
    },
    { clientId: 'b', ranges: [{ first: 0xc000, last: 0xffff }] },
  ])
  assert.ok(groups[0]?.group.test('orders') === true && !groups[0].group.test('orders-2'))
})

for (const [what, rules, line, path, said] of [
  [
    'overlap',
    ['{clientId: a, keys: [0-8000]}', '{clientId: b, keys: [8000-ffff]}'],
    7,
    'ranges[1].keys[0]',
    /overlaps with 0-8000 of a/,
  ],
  ['overlap with themselves', ['{clientId: a, keys: [0-8000, 7000-7001]}'], 6, 'ranges[0].keys[1]', /overlaps/],
  ['are empty', ['{clientId: a, keys: [9-8]}'], 6, 'ranges[0].keys[0]', /is empty: 9-8/],
  ['are none', ['{clientId: a, keys: []}'], 6, 'ranges[0].keys', /is empty/],
  [
    'leave the hash space',
    ['{clientId: a, keys: [0-10000]}'],
    6,
    'ranges[0].keys[0]',
    /outside the hash space: 0-10000/,
  ],
  ['are no ranges', ['{clientId: a, keys: [half]}'], 6, 'ranges[0].keys[0]', /not a range of buckets/],
  [
    'name a client twice',
    ['{clientId: a, keys: [0-1]}', '{clientId: a, keys: [2-3]}'],
    7,
    'ranges[1].clientId',
    /used twice: a/,
  ],
] as [string, string[], number, string, RegExp][]) {
  test(`ranges that ${what} are an error with line and key`, () => {
    const message = problem(...rules)
    assert.match(message, said)
    assert.ok(message.includes(`c.yaml:${line}`), message)
    assert.ok(message.includes(path), message)
  })
}
