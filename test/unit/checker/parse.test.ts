/** Reading histories: what is refused and why, and the order of merged files. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { check, rulesNamed } from '../../checker/checker.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import { merge, parseEvent, readHistory } from '../../checker/parse.ts'

const fault = (at: number, kind: string): HistoryEvent => ({ event: 'fault', at, kind })

test('an event that is not one names the place and the field', () => {
  assert.throws(() => parseEvent('{', 'f:1'), /f:1: not JSON/)
  assert.throws(() => parseEvent('[]', 'f:2'), /f:2: unknown event/)
  assert.throws(() => parseEvent('{"event":"eaten","at":1}', 'f:3'), /f:3: unknown event "eaten"/)
  assert.throws(() => parseEvent('{"event":"fault","kind":"cut"}', 'f:4'), /f:4: fault: at must be number/)
  const revoked = '{"event":"revoked","at":1,"member":"m","group":"g","partitions":[["t"]]}'
  assert.throws(() => parseEvent(revoked, 'f:5'), /partitions must be partitions/)
  assert.throws(() => parseEvent('{"event":"crashed","at":1}', 'f:6'), /exactly one of member and producer/)
})

test('merge goes by time, never reorders one history, and keeps equal times in the order given', () => {
  const first = [fault(1, 'a'), fault(5, 'b'), fault(4, 'c'), fault(9, 'd')]
  const second = [fault(5, 'e'), fault(6, 'f')]
  assert.deepEqual(
    merge([first, second]).map((event) => 'kind' in event && event.kind),
    ['a', 'b', 'c', 'e', 'f', 'd'],
  )
})

test('a last line cut short by a kill is left out, any other is an error', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-history-'))
  try {
    const path = join(folder, 'a.jsonl')
    const whole = JSON.stringify(fault(1, 'cut'))
    writeFileSync(path, `${whole}\n\n${whole}\n{"event":"fau`)
    assert.equal(readHistory(path).length, 2)
    writeFileSync(path, `${whole}\n{"event":"fau\n${whole}\n`)
    assert.throws(() => readHistory(path), /a\.jsonl:2: not JSON/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the verdict counts all violations and keeps a few', () => {
  const delivered = (sequence: number, offset: number): HistoryEvent => {
    const where = { topic: 't', partition: 0, offset }
    return { event: 'delivered', at: sequence, member: 'm', group: 'g', producer: 'p', sequence, key: 'k', ...where }
  }
  const history = Array.from({ length: 10 }, (_, i) => delivered(i, 20 - i))
  const verdict = check(history, { rules: rulesNamed(['key-order']), keep: 3 })
  assert.equal(verdict.counts['key-order'], 9)
  assert.equal(verdict.violations.length, 3)
  assert.deepEqual(verdict.violations[0]?.events, [history[0], history[1]])
  assert.throws(() => rulesNamed(['no-such']), /no rule no-such/)
})
