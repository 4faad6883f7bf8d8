import { readFileSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEmulator } from '../src/emulator/emulator.ts'
import { makeCertificate } from './faults/certificates.ts'
import { answering, credentials, message, run, temporaryFolder } from './harness/run.ts'
import { envFor, response, type Script, serve } from './harness/server.ts'

const check = ['config', 'check']
const refusing = response('{"type":"error","error":{"type":"authentication_error","message":"no"}}', '401 No')
const page = '{"data":[],"has_more":false}'
const advice = "'parley config list --effective' shows the address and names that were used"

/** Returns the result line of each service, by name. */
const resultsOf = (out: string): Record<string, string> =>
  Object.fromEntries(
    out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/: (.*)/s, 2) as [string, string]),
  )

/** Creates a script with one response for each kind of request: lists and the model. */
const answer =
  ({ list = response(page), model = response('{}', '404 No') } = {}): Script =>
  (socket: Socket, request) => {
    socket.end(request.startsWith('GET /alpha_cli/') ? model : list)
  }

const reachable = (status = 404) =>
  `reachable: the answer (status ${status}) does not refuse the token; to ask the model: parley chat 'Say hello'`

test('config check sends no paid request and prints a line for each service', async () => {
  const server = await serve(answer())
  const ended = await run(check, { env: envFor(server), exchange: 'network', stdin: '' })
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toBe(`gateway: ${reachable()}\nsession service: ok: the key was accepted\n`)
  expect(server.requests).toHaveLength(2)
  expect(server.requests[0]).toMatch(/^GET \/alpha_cli\/v1beta\/models\/alpha-2.5-pro HTTP/)
  expect(server.requests[0]).toContain(`Authorization: Bearer ${credentials.PARLEY_ACCESS_TOKEN}`)
  expect(server.requests[1]).toMatch(/^GET \/v1\/sessions\?limit=1 /)
  expect(server.requests[1]).toContain('vendor-beta: managed-agents-2026-04-01')
  await server.close()
})

test.each<[status: string, code: number, result: string | RegExp, type?: string]>([
  ['200 OK', 0, reachable(200)],
  ['400 No', 0, reachable(400)],
  ['404 No', 0, reachable(404)],
  ['405 No', 0, reachable(405)],
  ['429 No', 0, reachable(429)],
  ['401 No', 3, /^failed: the gateway answered 401 No: no; the refused secret is from PARLEY_ACCESS_TOKEN/],
  ['403 No', 3, /^failed: the gateway answered 403 No: no; the refused secret is from PARLEY_ACCESS_TOKEN/],
  ['402 No', 5, 'failed: the gateway answered 402 No: no'],
  [
    '302 No',
    4,
    /^failed: redirect not followed: 302 No, which does not show whether the token is accepted: no; /,
  ],
  ['500 No', 7, 'failed: the gateway answered 500 No, which does not show whether the token is accepted: no'],
  [
    '200 OK',
    8,
    'failed: the gateway answered with a web page, which does not show whether the token is accepted',
    'text/html; charset=utf-8',
  ],
])(
  'the answer to a GET of the model decides the exit code of config check: %s is %i',
  async (status, code, result, type) => {
    const body = '{"error":{"type":"authentication_error","message":"no"}}'
    const model = response(body, status, type === undefined ? [] : [`content-type: ${type}`])
    const server = await serve(answer({ model }))
    const world = { env: envFor(server), exchange: 'network' as const, stdin: '' }
    const ended = await run([...check, '--retries', '0'], world)
    expect(ended.code).toBe(code)
    const { gateway } = resultsOf(ended.out)
    if (typeof result === 'string') expect(gateway).toBe(result)
    else expect(gateway).toMatch(result)
    expect(server.requests.filter((request) => request.startsWith('POST'))).toEqual([])
    await server.close()
  },
)

test.each([
  [
    '401 No',
    3,
    /^failed: the session service answered 401 No: no; the refused secret is from PARLEY_API_KEY: /,
  ],
  ['403 No', 3, /^failed: .* 403 No: no; the refused secret is from PARLEY_API_KEY/],
  ['404 No', 0, /^not tried: the service does not list sessions \(404\): name a session with -s or PARLEY_/],
  ['405 No', 0, /^not tried: the service does not list sessions \(405\)/],
  ['500 No', 7, /^failed: the session service answered 500 No: no$/],
])(
  'C29: the answer to the session list decides the exit code of config check: %s is %i',
  async (status, code, result) => {
    const body = '{"type":"error","error":{"type":"authentication_error","message":"no"}}'
    const server = await serve(answer({ list: response(body, status) }))
    const ended = await run([...check, '--retries', '0'], {
      env: envFor(server),
      exchange: 'network',
      stdin: '',
    })
    expect(ended.code).toBe(code)
    expect(resultsOf(ended.out)['session service']).toMatch(result)
    if (code !== 0) expect(ended.err).toMatch(/^parley: session service: the session service answered/)
    await server.close()
  },
)

test('config check exits with 4 if both services answer 404 with a web page, as another server would', async () => {
  const page = response('<!DOCTYPE html><title>404</title>', '404 Not Found', ['content-type: text/html'])
  const server = await serve(answer({ model: page, list: page }))
  const ended = await run(check, { env: envFor(server), exchange: 'network', stdin: '' })
  expect(ended.code, ended.out).toBe(4)
  for (const result of Object.values(resultsOf(ended.out))) expect(result).toMatch(/^failed: .*404/)
  await server.close()
})

test('C29: config check exits with 8 for a web page instead of the session list', async () => {
  const server = await serve(answer({ list: response('<html><title>Log in</title>') }))
  const ended = await run(check, { env: envFor(server), exchange: 'network', stdin: '' })
  expect(ended.code).toBe(8)
  await server.close()
})

test.each([
  [['-s', 'sesn_1'], {}],
  [[], { PARLEY_SESSION: 'sesn_1' }],
])('config check checks the key by reading one event of the session: %j %j', async (flags, env) => {
  const server = await serve(answer())
  const world = { env: { ...envFor(server), ...env }, exchange: 'network' as const, stdin: '' }
  const ended = await run([...check, ...flags], world)
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(resultsOf(ended.out)['session service']).toBe('ok: the key was accepted')
  expect(server.requests).toHaveLength(2)
  expect(server.requests[1]).toMatch(/^GET \/v1\/sessions\/sesn_1\/events\?limit=1 /)
  expect(server.requests[1]).toContain(`x-api-key: ${credentials.PARLEY_API_KEY}`)
  await server.close()
})

test.each([
  [
    'no such session',
    '404 No',
    '{"type":"error","error":{"type":"not_found_error"}}',
    0,
    'ok: the key was accepted, no such session',
  ],
  [
    'a page of a web server',
    '404 No',
    '<h1>Not found</h1>',
    4,
    /^failed: the session service answered 404 No; 'parley sessions list' lists the sessions; the URL was .*, from agentsUrl \(PARLEY_AGENTS_URL\)$/,
  ],
  [
    'a wrong key',
    '401 No',
    '{"error":{"message":"bad key"}}',
    3,
    /^failed: the session service answered 401 No: bad key; the refused secret is from PARLEY_API_KEY: /,
  ],
  [
    'a key without permission',
    '403 No',
    '{}',
    3,
    /^failed: .* 403 No; the refused secret is from PARLEY_API_KEY/,
  ],
  [
    'a wrong version',
    '400 No',
    '{"error":{"message":"version"}}',
    4,
    /^failed: .* 400 No: version; 'parley config list --effective' shows/,
  ],
  ['a failing service', '500 No', '{}', 7, /^failed: the session service answered 500 No$/],
  ['a login page', '200 OK', '<html><title>Log in</title>', 8, /^failed: /],
])('C29: config check reports the session service with %s', async (_, status, body, code, result) => {
  const server = await serve(answer({ list: response(body, status) }))
  const world = { env: envFor(server), exchange: 'network' as const, stdin: '' }
  const ended = await run([...check, '-s', 'sesn_1'], world)
  expect(ended.code).toBe(code)
  const credential = resultsOf(ended.out)['session service'] ?? ''
  if (typeof result === 'string') expect(credential).toBe(result)
  else expect(credential).toMatch(result)
  if (code === 0) expect(ended.err).toBe('')
  else expect(ended.err).toMatch(/^parley: session service: /m)
  expect(ended.out + ended.err).not.toContain(credentials.PARLEY_API_KEY)
  await server.close()
})

test.each<[string, string[], Record<string, string>]>([
  ['a shorter setting', [], { PARLEY_TIMEOUT: '0.5' }],
  ['a flag', ['--timeout', '0.5'], {}],
])('C30: %s limits how long config check waits for a silent session service', async (_, flags, env) => {
  const server = await serve((socket, request) => void (request.startsWith('GET') || socket.end()))
  const argv = [...check, '-s', 'sesn_1', '--retries', '0', ...flags]
  const ended = await run(argv, { env: { ...envFor(server), ...env }, exchange: 'network', stdin: '' })
  expect(ended.code).toBe(10)
  expect(resultsOf(ended.out)['session service']).toContain('no byte arrived for 0.5 s')
  await server.close()
})

test('C29: config check reports a refused token, also with --errors json', async () => {
  const server = await serve(answer({ model: refusing }))
  const world = { env: envFor(server), exchange: 'network' as const, stdin: '' }
  const ended = await run([...check, '--errors', 'json'], world)
  expect(ended.code).toBe(3)
  expect(resultsOf(ended.out).gateway).toMatch(
    /^failed: the gateway answered 401 No: no; the refused secret is from PARLEY_ACCESS_TOKEN/,
  )
  expect(JSON.parse(ended.err).error).toMatchObject({
    kind: 'credentials',
    exit: 3,
    status: 401,
    message: 'gateway: the gateway answered 401 No',
  })
  await server.close()
})

test('C29: config check tries both services, and the first failure decides the exit code', async () => {
  const closed = await serve(() => {})
  await closed.close()
  const server = await serve(answer({ list: refusing }))
  const env = { ...envFor(server), PARLEY_BASE_URL: closed.url }
  const ended = await run([...check, '-s', 's', '--retries', '0'], {
    env,
    exchange: 'network',
    stdin: '',
  })
  expect(ended.code).toBe(9)
  expect(resultsOf(ended.out).gateway).toBe(`failed: 127.0.0.1:${closed.port}: connection refused; ${advice}`)
  expect(resultsOf(ended.out)['session service']).toMatch(/^failed: .* 401/)
  expect(ended.err).toBe(`parley: gateway: 127.0.0.1:${closed.port}: connection refused\n`)
  await server.close()
})

test('config check prints no --profile if the environment has the token, because that flag ignores it', async () => {
  const env = { PARLEY_CONFIG_DIR: temporaryFolder(), PARLEY_AGENTS_URL: '' }
  const file = JSON.stringify({ current: 'work', profiles: { work: { family: 'beta' } } })
  writeFileSync(join(env.PARLEY_CONFIG_DIR, 'config.json'), file, { mode: 0o600 })
  const { out } = await run(check, { env, exchange: answering('{}'), stdin: '' })
  expect(resultsOf(out).gateway).toBe(reachable(200))
})

test('config check prints a failure once on a terminal', async () => {
  const exchange = answering('{"error":{"message":"no"}}', { status: 401 })
  const world = { env: { PARLEY_AGENTS_URL: '' }, exchange, tty: ['stdout', 'stderr'] as const }
  const { code, out, err } = await run([...check, '--color', 'never'], {
    ...world,
    tty: [...world.tty],
    columns: 300,
  })
  expect([code, out.match(/answered 401/g), err]).toEqual([
    3,
    ['answered 401'],
    'parley: the gateway failed the check\n',
  ])
})

test('C29: config check names an unknown host and the command that shows its source', async () => {
  const cwd = temporaryFolder()
  const env = { PARLEY_CONFIG_DIR: cwd, PARLEY_BASE_URL: '', PARLEY_AGENTS_URL: '' }
  const profiles = { work: { baseUrl: 'https://no-such-host.invalid', accessToken: 't0123456' } }
  writeFileSync(join(cwd, 'config.json'), JSON.stringify({ profiles }), { mode: 0o600 })
  const argv = [...check, '--profile', 'work']
  const ended = await run(argv, { env, exchange: 'network', stdin: '' })
  expect(ended.code).toBe(9)
  expect(resultsOf(ended.out)).toEqual({
    gateway: expect.stringMatching(
      /^failed: no-such-host\.invalid: .*; 'parley config list --profile work --effective' shows the address and names that were used$/,
    ),
    'session service': 'not tried: agentsUrl is not set',
  })
})

test('C29: config check says how to trust a self-signed certificate (needs openssl)', async () => {
  const tls = makeCertificate('DNS:localhost')
  const server = await serve(answer(), { tls })
  const env = { PARLEY_AGENTS_URL: `https://localhost:${server.port}`, PARLEY_BASE_URL: '' }
  const world = { env, exchange: 'network' as const, stdin: '' }
  const ended = await run(check, world)
  expect(ended.code).toBe(9)
  expect(resultsOf(ended.out)['session service']).toMatch(/^failed: .*self-signed: --cacert FILE trusts it; /)
  const trusting = await run([...check, '--cacert', tls.path], world)
  expect(trusting).toMatchObject({ code: 0, err: '' })
  expect(resultsOf(trusting.out)['session service']).toBe('ok: the key was accepted')
  await server.close()
})

test('C29: config check names the proxy, both if it refuses and if it is unreachable', async () => {
  const proxy = await serve((socket) => socket.end('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n'))
  const env = { PARLEY_AGENTS_URL: 'https://agents.test', PARLEY_BASE_URL: '', HTTPS_PROXY: proxy.url }
  const world = { env, exchange: 'network' as const, stdin: '' }
  const refused = await run(check, world)
  expect(refused.code).toBe(3)
  expect(resultsOf(refused.out)['session service']).toMatch(
    /^failed: the proxy \S+, from HTTPS_PROXY, asks for a user name.*407$/,
  )
  await proxy.close()
  const away = await run([...check, '--retries', '0'], world)
  expect(away.code).toBe(9)
  expect(resultsOf(away.out)['session service']).toBe(
    `failed: the proxy in HTTPS_PROXY, 127.0.0.1:${proxy.port}: connection refused; ${advice}`,
  )
})

test.each([
  [
    { PARLEY_ACCESS_TOKEN: '' },
    /^failed: no access token for the gateway: 'parley config init' asks for the missing settings/,
    3,
  ],
  [
    { PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: 'echo why >&2; exit 1' },
    /^failed: accessTokenCommand \(PARLEY_ACCESS_TOKEN_COMMAND\) .*why/,
    3,
  ],
  [
    { PARLEY_BASE_URL: 'http://gateway.test' },
    /^failed: PARLEY_BASE_URL: plain http to gateway\.test would not be encrypted/,
    3,
  ],
])('C29: config check fails if a chat could not send its token: %j (needs sh)', async (env, result, code) => {
  const ended = await run(check, { env: { ...env, PARLEY_AGENTS_URL: '' }, stdin: '' })
  expect(ended).toMatchObject({ code, requests: [] })
  expect(resultsOf(ended.out).gateway).toMatch(result)
})

test('C29: config check without any address exits with 3 and prints nothing on stdout', async () => {
  const env = { PARLEY_BASE_URL: '', PARLEY_AGENTS_URL: '' }
  const ended = await run(check, { env, stdin: '' })
  expect(ended).toMatchObject({ code: 3, out: '', requests: [] })
  expect(ended.err).toContain("'parley config init' asks for an address")
})

test('config check of the demo profile needs no network', async () => {
  const ended = await run([...check, '--profile', 'demo', '-s', 'sesn_1'], {
    exchange: createEmulator({}),
    stdin: '',
  })
  expect(ended.code).toBe(0)
  expect(resultsOf(ended.out).gateway).toMatch(/^reachable: .* parley chat --profile demo 'Say hello'$/)
})

test.each([['--raw'], ['--dry-run'], ['--curl'], ['--retry-unknown']])(
  'config check exits with 2 for %s',
  async (flag) => {
    expect(await run([...check, flag], { stdin: '' })).toMatchObject({ code: 2, out: '', requests: [] })
  },
)

test('config check wraps its lines on a terminal', async () => {
  const env = { NO_COLOR: '1', PARLEY_AGENTS_URL: '' }
  const world = { env, tty: ['stdout' as const], columns: 60, exchange: answering(message('Hi')) }
  const { code, out } = await run(check, world)
  expect(code).toBe(0)
  expect(out).toMatch(/^gateway: reachable: the answer \(status 200\)/)
  for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(60)
})

test('config check escapes the text of a service, and never starts a line with it', async () => {
  const hostileText = 'a\x1b]0;x\x07\nparley: b\u202e'
  const exchange = answering(JSON.stringify({ error: { message: hostileText } }), { status: 400 })
  const tty: ('stdout' | 'stderr')[] = ['stdout', 'stderr']
  const { out, err } = await run([...check, '-s', 's', '--color', 'never'], {
    exchange,
    tty,
    columns: 80,
  })
  expect(out + err).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/)
  expect(out).not.toMatch(/^parley: b/m)
  expect(out).toContain('400')
})

test('--report contains the failure of config check', async () => {
  const file = join(temporaryFolder(), 'report.json')
  const exchange = answering('{}', { status: 401 })
  expect(await run([...check, '--report', file], { exchange, stdin: '' })).toMatchObject({ code: 3 })
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
    command: 'config check',
    exit: 3,
    kind: 'credentials',
  })
})
