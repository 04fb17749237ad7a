/** The definition language and the comparison with Kafka's definitions: what they accept, and what they must notice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDefinition } from '../../../scripts/codegen/parse.ts'
import { compareFacts } from '../../../scripts/protocol-check/compare.ts'
import { kafkaFacts, ourFacts } from '../../../scripts/protocol-check/facts.ts'
import { withoutComments } from '../../../scripts/protocol-check/kafka.ts'
import type { KafkaField, KafkaMessage } from '../../../scripts/protocol-check/kafka.ts'

const source = `# What it does.
api 9 Sample
versions 0-5
flexible 3+

request
  struct Shared
    id: int32
  name: string 0-2 @topic
  rack: string?4+ 1+ = null ignorable
  items: [Item]? 2+
    epoch: int32 = -1
    shared: Shared
  hint: Shared 3+ tag 2

response
  errorCode: int16
`

test('a definition is read with its versions, nulls, defaults, tags and nested structs', () => {
  const definition = parseDefinition('09-sample', source)
  assert.deepEqual(
    [definition.kind, definition.key, definition.name, definition.flexibleFrom, definition.comment],
    ['api', 9, 'Sample', 3, 'What it does.'],
  )
  const root = definition.messages[0]?.root
  assert.deepEqual(
    root?.fields.map((field) => [field.name, field.versions.from, field.versions.to, field.nullable?.from, field.tag]),
    [
      ['name', 0, 2, undefined, undefined],
      ['rack', 1, 5, 4, undefined],
      ['items', 2, 5, 2, undefined],
      ['hint', 3, 5, undefined, 2],
    ],
  )
  assert.deepEqual(
    definition.messages[0]?.structs.map((struct) => [struct.name, struct.versions.from]),
    [
      ['SampleRequestShared', 2],
      ['SampleRequestItem', 2],
      ['SampleRequest', 0],
    ],
  )
})

test('a mistake in a definition is reported with its line', () => {
  const broken: [string, RegExp][] = [
    ['  hint: Shared 3+ tag 2', /09-sample:14: not a field: hint; Shared/],
    ['  errorCode: int16', /no struct Int17/],
    ['    id: int32', /wrong indentation/],
    ['    epoch: int32 = -1', /in no version/],
  ]
  const replacements = ['  hint; Shared', '  errorCode: Int17', '      id: int32\n     x: int8', '    epoch: int32 0-1']
  for (const [index, [line, message]] of broken.entries()) {
    assert.throws(() => parseDefinition('09-sample', source.replace(line, replacements[index] ?? '')), message)
  }
})

const versions = { from: 0, to: 5 }
const fields: KafkaField[] = [
  { name: 'Name', type: 'string', versions: '0-2', entityType: 'topicName' },
  { name: 'Rack', type: 'string', versions: '1+', nullableVersions: '4+', default: 'null', ignorable: true },
  {
    name: 'Items',
    type: '[]Item',
    versions: '2+',
    nullableVersions: '2+',
    fields: [
      { name: 'Epoch', type: 'int32', versions: '0+', default: '-1' },
      { name: 'Shared', type: 'Shared', versions: '0+' },
    ],
  },
  { name: 'Hint', type: 'Shared', versions: '3+', taggedVersions: '3+', tag: 2 },
]

function problems(theirs: readonly KafkaField[]): string[] {
  const message: KafkaMessage = {
    name: 'SampleRequest',
    type: 'request',
    validVersions: '0-5',
    fields: theirs,
    commonStructs: [{ name: 'Shared', fields: [{ name: 'Id', type: 'int32', versions: '0+' }] }],
  }
  const ours = parseDefinition('09-sample', source).messages[0]
  assert.ok(ours)
  return compareFacts(ourFacts(ours, versions), kafkaFacts(message, versions), versions)
}

test('the comparison finds every kind of difference', () => {
  const changed = (index: number, change: Partial<KafkaField>) =>
    fields.map((field, at) => (at === index ? { ...field, ...change } : field))
  assert.deepEqual(problems(fields), [])
  assert.deepEqual(problems(changed(0, { versions: '0-3' })), ['name: versions 0-3 there, 0-2 here'])
  assert.deepEqual(problems(changed(0, { type: 'uuid' })), ['name: type uuid there, string here'])
  assert.deepEqual(problems(changed(1, { nullableVersions: '1+' })), ['rack: nullable 1-5 there, 4-5 here'])
  assert.deepEqual(problems(changed(1, { default: null })), ['rack: default empty there, null here'])
  assert.deepEqual(problems(changed(1, { ignorable: false })), ['rack: ignorable false there, true here'])
  assert.deepEqual(problems(changed(3, { tag: 1 })), ['hint: tag 1 there, 2 here'])
  assert.deepEqual(problems(fields.slice(1)), ['name: only here'])
  assert.deepEqual(problems([...fields, { name: 'New', type: 'int8', versions: '5' }]), [
    'new: only there (versions 5)',
  ])
  const [name, rack, items, hint] = fields
  assert.ok(name && rack && items && hint)
  assert.deepEqual(problems([rack, name, items, hint]), ['fields in another order in version 1'])
})

test('comments are removed, but not from strings', () => {
  assert.deepEqual(JSON.parse(withoutComments('// a\n{ "url": "http://x", // b\n "n": 1 }')), { url: 'http://x', n: 1 })
})
