import { expect, test } from 'vitest'
import { run } from './harness/run.ts'
import { envFor, serve } from './harness/server.ts'

test('C30: config check waits 30 s for a silent session service, even if the setting timeout is 1h', async () => {
  const server = await serve(() => {})
  const ended = await run(['config', 'check', '--retries', '0'], {
    env: { ...envFor(server), PARLEY_TIMEOUT: '1h' },
    exchange: 'network',
    stdin: '',
  })
  expect(ended).toMatchObject({ code: 10, out: expect.stringContaining('no byte arrived for 30 s') })
})
