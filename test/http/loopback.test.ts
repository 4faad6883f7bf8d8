import { describe, expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'
import { serve } from '../harness/server.ts'

const closed = await serve(() => {})
await closed.close()

describe.each<[host: string, isThisMachine: boolean]>([
  ['localhost', true],
  ['127.0.0.1', true],
  ['[::1]', true],
  ['localhost.h.test', false],
])('plain http and the proxy for the host %s', (host, isHere) => {
  test(`parley ${isHere ? 'sends' : 'does not send'} a token to ${host} over plain http`, async () => {
    const argv = ['chat', 'hi', '--base-url', `http://${host}:8080`]
    const { code, requests } = await run(argv, { exchange: answering(message('Hello')) })
    expect([code, requests.length]).toEqual(isHere ? [0, 1] : [3, 0])
  })

  test(`with ALL_PROXY set, parley connects to ${host} ${isHere ? 'directly' : 'through the proxy'}`, async () => {
    const argv = ['chat', 'hi', '--base-url', `https://${host}:${closed.port}`, '--retries', '0']
    const env = { ALL_PROXY: 'no-proxy-at-all' }
    const { code, err } = await run(argv, { env, exchange: 'network' })
    expect(code).toBe(isHere ? 9 : 3)
    expect(err.includes('ALL_PROXY')).toBe(!isHere)
  })
})
