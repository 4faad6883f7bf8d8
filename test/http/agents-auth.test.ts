import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { credentials, run } from '../harness/run.ts'

const key = credentials.PARLEY_API_KEY
const bearer = { PARLEY_AGENTS_AUTH: 'bearer', PARLEY_SESSION: 's' }

test.each([
  ['events send', ['events', 'send', 'hi']],
  ['events list', ['events', 'list']],
  ['events run', ['events', 'run', 'hi']],
  ['api', ['api', 'agents', '/v1/sessions/s']],
])('the setting agentsAuth selects x-api-key or Authorization as the header for %s', async (_, argv) => {
  const exchange = createEmulator({ credentials: { apiKey: key } })
  for (const [env, expected] of [
    [bearer, [`Bearer ${key}`, undefined]],
    [{ PARLEY_SESSION: 's' }, [undefined, key]],
  ] as const) {
    const { code, requests } = await run(argv, { env, exchange })
    expect(code).toBe(0)
    for (const { headers } of requests)
      expect([headers.Authorization, headers['x-api-key']]).toEqual(expected)
  }
})

test('if agentsAuth is bearer, -H Authorization replaces the API key or removes it', async () => {
  const world = { env: { ...bearer, PARLEY_API_KEY: '' }, exchange: createEmulator({}) }
  const replaced = await run(['events', 'list', '-H', 'authorization: Bearer other-key-9876'], world)
  expect(replaced.code).toBe(0)
  expect(replaced.requests[0]?.headers).toMatchObject({ authorization: 'Bearer other-key-9876' })
  expect((await run(['events', 'list', '-H', 'Authorization:'], world)).code).toBe(3)
  expect((await run(['events', 'list', '-H', 'x-api-key: other'], world)).err).toContain('no API key')
})
