import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillIn, fillTemplate, readTargets } from '../../bench/target.ts'

const known = [
  'port',
  'portBelow',
  'port2',
  'port3',
  'upstream',
  'upstreamPort',
  'dir',
  'files',
  'root',
  'venv',
  'node22',
]
const values = Object.fromEntries(known.map((name) => [name, name.toUpperCase()]))

test('a command names only what is known', () => {
  assert.equal(fillIn('proxy --to {upstream} --on {port}', values), 'proxy --to UPSTREAM --on PORT')
  assert.throws(() => fillIn('proxy {nothing}', values), /nothing is known for \{nothing\}/)
})

test('a template keeps braces that are not ours', () => {
  assert.equal(
    fillTemplate('events { worker {port}; a: { port2 } } {other}', values),
    'events { worker PORT; a: PORT2 } {other}',
  )
})

test('every target of the file can be started: its placeholders and its template exist', () => {
  const targets = readTargets()
  assert.equal(targets[0]?.name, 'direct')
  for (const { command, template, version } of targets) {
    fillIn(`${command ?? ''} ${version ?? ''}`, values)
    if (template === undefined) continue
    const text = readFileSync(join('test/bench/targets', template), 'utf8')
    assert.match(fillTemplate(text, values), /UPSTREAM/, template)
    assert.ok(command?.includes(`{dir}/${template}`), template)
  }
})
