import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createEmulator } from '../src/emulator/emulator.ts'
import { answering, credentials, rejected, run } from './harness/run.ts'
import { envFor, response, type Script, serve } from './harness/server.ts'

const check = ['config', 'check']
const refusing = response('{"type":"error","error":{"type":"authentication_error","message":"no"}}', '401 No')
const page = '{"data":[],"has_more":false}'
const advice = "'parley config list --effective' shows the address and other settings in use"

/** Returns the result line of each service, by name. */
const resultsOf = (out: string): Record<string, string> => {
  const lines = out.trimEnd().split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2)))
}

/** Returns a server script with one response for requests of lists, and one for requests of the model. */
const answer =
  ({ list = response(page), model = response('{}', '404 No') } = {}): Script =>
  (socket: Socket, request) => {
    socket.end(request.startsWith('GET /alpha_cli/') ? model : list)
  }

/** Runs config check with a server as both services. */
async function checkServer(script: Script, flags: string[] = [], env: Record<string, string> = {}) {
  const server = await serve(script)
  const world = { env: { ...envFor(server), ...env }, exchange: 'network' as const, stdin: '' }
  const ended = await run([...check, ...flags], world)
  return { ...ended, received: server.requests, results: resultsOf(ended.out) }
}

const reachableWithoutProof = (status: string) =>
  `reachable, but a ${status} does not show whether the key is accepted; 'parley events list -s ID --limit 1' tests it: the session service answered ${status} No: no`

const reachable = (status = 404) =>
  `reachable: the gateway did not refuse the token (status ${status}); to ask the model: parley chat 'Say hello'`

test('config check sends no paid request and prints a line for each service', async () => {
  const { received, ...ended } = await checkServer(answer())
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toBe(`gateway: ${reachable()}\nsession service: ok: the key was accepted\n`)
  expect(received).toHaveLength(2)
  expect(received[0]).toMatch(/^GET \/alpha_cli\/v1beta\/models\/alpha-2.5-pro HTTP/)
  expect(received[0]).toContain(`Authorization: Bearer ${credentials.PARLEY_ACCESS_TOKEN}`)
  expect(received[1]).toMatch(/^GET \/v1\/sessions\?limit=1 /)
  expect(received[1]).toContain('vendor-beta: managed-agents-2026-04-01')
})

const refusedToken = '{"error":{"type":"authentication_error","message":"no"}}'

const refused = 'the refused secret is from '
const unproved = ', which does not show whether the token is accepted'
const inBody = 'failed: the service answered with an error in a successful response'

test.each<[status: string, type: string, code: number, result: string]>([
  ['200 OK', 'authentication', 3, `${inBody}: no; ${refused}PARLEY_ACCESS_TOKEN`],
  ['200 OK', 'not_found', 0, reachable(200)],
  ['200 OK', 'rate_limit', 0, reachable(200)],
  ['200 OK', 'api', 7, `${inBody}${unproved}: no`],
  ['400 No', 'authentication', 0, reachable(400)],
  ['404 No', 'authentication', 0, reachable(404)],
  ['429 No', 'authentication', 0, reachable(429)],
  ['503 No\r\nRetry-After: 120', 'api', 6, `failed: the gateway answered 503 No${unproved}: no`],
  ['401 No', 'authentication', 3, `failed: the gateway answered 401 No: no; ${refused}PARLEY_ACCESS_TOKEN`],
  ['402 No', 'api', 5, 'failed: the gateway answered 402 No: no'],
  ['302 No', 'api', 4, `failed: redirect not followed: 302 No${unproved}: no; `],
  ['500 No', 'api', 7, `failed: the gateway answered 500 No${unproved}: no`],
])('after %j of the gateway with the error %s, config check exits with %i', async (...row) => {
  const [status, type, code, result] = row
  const body = `{"error":{"type":"${type}_error","message":"no"}}`
  const ended = await checkServer(answer({ model: response(body, status) }), ['--retries', '0'])
  expect(ended.code).toBe(code)
  expect(ended.results.gateway).toSatisfy((line: string) => line.startsWith(result))
  expect(ended.received.filter((request) => request.startsWith('POST'))).toEqual([])
})

const listUrl = 'the URL was http://127.0.0.1:PORT/v1/sessions?limit=1, from agentsUrl'

test.each<[status: string, code: number, result: string]>([
  ['401 No', 3, `failed: the session service answered 401 No: no; ${refused}PARLEY_API_KEY: `],
  ['404 No', 0, `${reachableWithoutProof('404')}; ${listUrl}`],
  ['405 No', 0, `${reachableWithoutProof('405')}; ${listUrl}`],
  ['500 No', 7, 'failed: the session service answered 500 No: no'],
])('C29: after %j of the session service, config check exits with %i', async (status, code, result) => {
  const ended = await checkServer(answer({ list: response(refusedToken, status) }), ['--retries', '0'])
  expect(ended.code).toBe(code)
  const line = ended.results['session service']?.replace(/:\d+\//, ':PORT/')
  expect(line?.startsWith(result), line).toBe(true)
  if (code !== 0) expect(ended.err).toMatch(/^parley: session service: the /)
})

test('config check exits with 8 if both services answer 200 with a web page', async () => {
  const page = response(' <!doctype html><title>Sign in</title>')
  const ended = await checkServer(answer({ model: page, list: page }))
  expect(ended.code).toBe(8)
  expect(ended.results).toMatchObject({
    gateway: expect.stringMatching(
      /^failed: the gateway answered with a web page, .*; the URL was \S+, from base/,
    ),
    'session service': expect.stringMatching(
      /^failed: the list is not JSON: Sign in; the URL was \S+, from agentsUrl \(PARLEY_AGENTS_URL\)$/,
    ),
  })
})

test('config check exits with 4 if both services answer 404 with a web page', async () => {
  const page = response('<!DOCTYPE html><title>404</title>', '404 Not Found', ['content-type: text/html'])
  const ended = await checkServer(answer({ model: page, list: page }))
  expect(ended.code, ended.out).toBe(4)
  for (const result of Object.values(ended.results)) expect(result).toMatch(/^failed: .*404/)
})

test.each([
  ['429 No\r\nRetry-After: 9', 'later', { kind: 'rate-limited', retryAfter: 9 }],
  ['503 No', 'later', { kind: 'service' }],
  ['400 No', 'never', { kind: 'refused' }],
])('after a 503 of the gateway and %j of the other service, retry is %s', async (status, retry, error) => {
  const model = response('{}', '503 No')
  const flags = ['--retries', '0', '--errors', 'json']
  const ended = await checkServer(answer({ model, list: response('{}', status) }), flags)
  const both = JSON.parse(ended.err).error
  expect(both).toMatchObject({ kind: 'service', retry, safeToRetry: retry === 'later' })
  const only = await checkServer(answer({ list: response('{}', status) }), flags)
  expect(JSON.parse(only.err).error).toMatchObject({ ...error, retry, safeToRetry: retry === 'later' })
})

test('if no service answers before the deadline, the failure of config check has "deadline": true', async () => {
  const ended = await checkServer(() => {}, ['--deadline', '0.5', '--errors', 'json'])
  const expected = { kind: 'unknown', retry: 'later', safeToRetry: true, deadline: true }
  expect(JSON.parse(ended.err).error).toMatchObject(expected)
})

test('C29: config check tries both services, and the first failure decides the exit code', async () => {
  const closed = await serve(() => {})
  await closed.close()
  const env = { PARLEY_BASE_URL: closed.url }
  const ended = await checkServer(answer({ list: refusing }), ['--retries', '0'], env)
  expect(ended.code).toBe(9)
  expect(ended.results.gateway).toBe(`failed: 127.0.0.1:${closed.port}: connection refused; ${advice}`)
  expect(ended.results['session service']).toMatch(/^failed: .* 401/)
  expect(ended.err).toBe(`parley: gateway: 127.0.0.1:${closed.port}: connection refused\n`)
})

test.each([
  [
    { PARLEY_ACCESS_TOKEN: '' },
    /^failed: no access token for the gateway: 'parley config init' asks for the missing settings/,
  ],
  [
    { PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: 'echo why >&2; exit 1' },
    /^failed: accessTokenCommand \(PARLEY_ACCESS_TOKEN_COMMAND\) failed with exit code 1$/,
  ],
  [
    { PARLEY_BASE_URL: 'http://gateway.test' },
    /^failed: PARLEY_BASE_URL: plain http to gateway\.test would not be encrypted/,
  ],
])('C29: config check exits with 3 if no token can be sent with %j (needs sh)', async (env, result) => {
  const ended = await run(check, { env: { ...env, PARLEY_AGENTS_URL: '' }, stdin: '' })
  expect(ended).toMatchObject({ code: 3, requests: [] })
  expect(resultsOf(ended.out).gateway).toMatch(result)
  if ('PARLEY_ACCESS_TOKEN_COMMAND' in env) expect(ended.err).toContain('\n  the command printed: why\n')
})

test('C29: config check without any address exits with 3 and prints nothing on stdout', async () => {
  const env = { PARLEY_BASE_URL: '', PARLEY_AGENTS_URL: '' }
  const advice = "'parley config init' asks for an address"
  expect(await run(check, { env, stdin: '' })).toMatchObject(rejected(3, advice))
})

test('config check of the demo profile needs no network', async () => {
  const ended = await run([...check, '--profile', 'demo'], { exchange: createEmulator({}), stdin: '' })
  expect(ended.code).toBe(0)
  expect(resultsOf(ended.out).gateway).toMatch(/^reachable: .* parley chat --profile demo 'Say hello'$/)
})

const unsupported = ['--raw', '--dry-run', '--curl', '--retry-unknown']
test.each(unsupported)('config check exits with 2 for %s', async (flag) => {
  expect(await run([...check, flag], { stdin: '' })).toMatchObject({ code: 2, out: '', requests: [] })
})

test('config check escapes the text of a service, and wraps its lines at words', async () => {
  const hostileText = 'a\x1b]0;x\x07\nparley: b\u202e ##vso[task.x]'
  const exchange = answering(JSON.stringify({ error: { message: hostileText } }), { status: 400 })
  const tty: ('stdout' | 'stderr')[] = ['stdout', 'stderr']
  const { out, err } = await run([...check, '--color', 'never'], { exchange, tty, columns: 80 })
  expect(out + err).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/)
  expect(out).not.toMatch(/^parley: b|##vso/m)
  expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  expect(out).toContain('400')
})
