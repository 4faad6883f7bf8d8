import { expect, test } from 'vitest'
import { type Endpoint, endpoints } from '../../src/wire/endpoints.ts'

test('parley may repeat a GET always, a gateway call after a failure, and other calls only after a refusal', () => {
  const all: [string, Endpoint][] = Object.entries(endpoints)
  for (const [name, { method, service, repeat }] of all) {
    const allowed = method === 'GET' ? 'always' : service === 'gateway' ? 'failed' : 'unaccepted'
    expect({ name, repeat }).toEqual({ name, repeat: allowed })
  }
  const proved = all.filter(([, { isProvedByReceipt }]) => isProvedByReceipt)
  expect(proved.map(([name]) => name)).toEqual(['createSession', 'sendEvents'])
})
