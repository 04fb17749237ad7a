import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configSchema } from '../../../src/config/schema.ts'
import { describeListenError, describeListenErrors } from '../../../src/lifecycle/start-error.ts'

const config = configSchema.parse({
  upstream: { bootstrap: ['kafka:9092'] },
  listeners: [{ bind: '10.1.2.3', advertise: 'proxy', basePort: 19_093, nodeIds: '0-3' }],
  admin: { bind: '127.0.0.1:9190' },
})

function failed(code: string, port: number, address = '10.1.2.3'): Error {
  return Object.assign(new Error(`listen ${code}: ${address}:${port}`), { code, address, port })
}

test('the setting is the port where the port is wrong, the address where that is', () => {
  const said = (code: string, port: number) => describeListenError(failed(code, port), config).message
  assert.match(said('EADDRINUSE', 19_092), /change listeners\[0\]\.bootstrapPort, or basePort for all ports\)$/)
  assert.match(said('EADDRINUSE', 19_095), /change listeners\[0\]\.basePort; it is the port of node 2\)$/)
  assert.match(said('EADDRNOTAVAIL', 19_095), /correct the address in listeners\[0\]\.bind\)$/)
  assert.match(said('EADDRNOTAVAIL', 9190), /correct the address in admin\.bind\)$/)
})

test('several ports of one address are one line', () => {
  const errors = [19_092, 19_093, 19_094, 19_096].map((port) => failed('EADDRINUSE', port))
  assert.deepEqual(describeListenErrors([...errors, failed('EACCES', 9190, '127.0.0.1')], config), [
    'cannot listen on 4 ports of 10.1.2.3 (19092-19094, 19096): they are in use (fix: stop the program that uses them, or change listeners[0].basePort and bootstrapPort)',
    'cannot listen on 127.0.0.1:9190: this user may not use the port (below 1024?) (fix: choose another port in admin.bind)',
  ])
  const [line] = describeListenErrors(
    [19_092, 19_093].map((port) => failed('EADDRNOTAVAIL', port)),
    config,
  )
  assert.equal(
    line,
    'cannot listen on 2 ports of 10.1.2.3 (19092-19093): this machine has no such address (fix: correct the address in listeners[0].bind)',
  )
})
