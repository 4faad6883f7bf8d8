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
])('agentsAuth selects x-api-key or Authorization for the key of %s', async (_, argv) => {
  for (const world of [{ env: bearer }, { env: { PARLEY_SESSION: 's' } }]) {
    const { code, requests } = await run(argv, {
      ...world,
      exchange: createEmulator({ credentials: { apiKey: key } }),
    })
    expect(code).toBe(0)
    const shown = requests.map(({ headers }) => [headers.Authorization, headers['x-api-key']])
    const expected = 'PARLEY_AGENTS_AUTH' in world.env ? [`Bearer ${key}`, undefined] : [undefined, key]
    expect(shown).toEqual(requests.map(() => expected))
  }
})

test('--agents-auth bearer selects the Authorization header; an unknown value exits with 2', async () => {
  const flagged = await run(['events', 'list', '-s', 's', '--agents-auth', 'bearer', '--dry-run'])
  expect(JSON.parse(flagged.out).headers).toMatchObject({ Authorization: 'Bearer [redacted]' })
  expect(flagged.out).not.toContain('x-api-key')
  const wrong = await run(['events', 'list', '-s', 's', '--agents-auth', 'basic', '--dry-run'])
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('x-api-key or bearer') })
})

test('--curl reads the API key from PARLEY_API_KEY if agentsAuth is bearer', async () => {
  const { out } = await run(['events', 'list', '-s', 's', '--curl'], { env: bearer })
  expect(out).toContain(`printf '%s\\n' "Authorization: Bearer $PARLEY_API_KEY" | curl`)
  expect(out).not.toContain(key)
})

test('agentsAuth does not change the credentials of the gateway', async () => {
  const { out } = await run(['api', 'gateway', '/v1/x', '--curl'], { env: bearer })
  expect(out).toContain('"Authorization: Bearer $PARLEY_ACCESS_TOKEN"')
})

test('if agentsAuth is bearer, -H Authorization replaces the API key or removes it', async () => {
  const world = { env: { ...bearer, PARLEY_API_KEY: '' }, exchange: createEmulator({}) }
  const replaced = await run(['events', 'list', '-H', 'authorization: Bearer other-key-9876'], world)
  expect(replaced.code).toBe(0)
  expect(replaced.requests[0]?.headers).toMatchObject({ authorization: 'Bearer other-key-9876' })
  expect((await run(['events', 'list', '-H', 'Authorization:'], world)).code).toBe(3)
  expect((await run(['events', 'list', '-H', 'x-api-key: other'], world)).err).toContain('no API key')
})
