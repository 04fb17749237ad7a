import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selfTimes } from '../../bench/profile.ts'

const frame = (functionName: string, url: string, lineNumber = 9) => ({ functionName, url, lineNumber })

test('self times leave waiting out and add up by function', () => {
  const times = selfTimes({
    nodes: [
      { id: 1, callFrame: frame('(idle)', '') },
      { id: 2, callFrame: frame('writev', '') },
      { id: 3, callFrame: frame('onData', 'file:///somewhere/dist/net/chunk.js') },
      { id: 4, callFrame: frame('onData', 'file:///somewhere/dist/net/chunk.js') },
      { id: 5, callFrame: frame('', 'node:net') },
    ],
    samples: [1, 2, 3, 4, 5],
    timeDeltas: [1000, 60, 10, 10, 20],
  })
  assert.deepEqual(times, [
    { what: 'writev', share: 0.6 },
    { what: 'onData net/chunk.js:10', share: 0.2 },
    { what: '(anonymous) node:net:10', share: 0.2 },
  ])
})
