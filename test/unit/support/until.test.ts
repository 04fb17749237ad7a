import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'

test('a wait ends with its condition, and one in vain says for what and where', async () => {
  let asked = 0
  await until(() => ++asked === 3)
  assert.equal(asked, 3)
  const isServed = async (): Promise<boolean> => false
  await assert.rejects(
    until(async () => await isServed(), 0),
    ({ message, stack = '' }: Error) => message.includes('isServed()') && stack.includes('until.test.ts'),
  )
})
