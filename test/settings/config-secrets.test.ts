import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { version } from '../../package.json'
import { execute, preloading } from '../harness/process.ts'
import { answering, configFolder, message, readText, rejected, run, temporaryFolder } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'
import { createProfileHome, noSettings, token } from './profile-home.ts'

/** Creates a folder whose current profile has these values, and an empty environment. */
const profile = (values: object) => createProfileHome({ profiles: { default: values } }).world

const sentToken = (ended: Awaited<ReturnType<typeof run>>) => ended.requests[0]?.headers.Authorization

test('K01: secrets have no flag, config set accepts no secret as an argument, and no message prints the secret', async () => {
  for (const argv of [
    ['chat', 'x', '--access-token', token],
    ['chat', 'x', `--access-token=${token}`],
    ['chat', 'x', `--api-key=${token}`],
    ['config', 'set', 'accessToken', token],
    ['config', 'set', '--access-token', token],
    ['config', 'set', `--access-token=${token}`],
    ['config', 'set', 'PARLEY_API_KEY', token],
  ]) {
    const ended = await run(argv)
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
    expect(ended.err).not.toContain('canary')
  }
})

test.each([
  ['chat', '--timeout', token, 'x'],
  ['chat', '--max-output-tokens', token, 'x'],
])('K01: the message about an invalid value redacts a secret in it: %s %s %s', async (...argv) => {
  const worlds = [{ env: { PARLEY_ACCESS_TOKEN: token } }, { env: { PARLEY_API_KEY: token } }]
  // The parser of a flag runs before the profile is read, so it cannot redact secrets of the profile.
  if (!argv.includes('--max-output-tokens')) worlds.push(profile({ apiKey: token }))
  for (const world of worlds) {
    const ended = await run(argv, world)
    expect(ended).toMatchObject({ out: '', requests: [], err: expect.stringContaining('[redacted]') })
    expect(ended.err).not.toContain('canary')
  }
})

test('K01: the command line of the parley process does not contain the sent secret (needs /proc)', async () => {
  const server = await serve((socket) => socket.end(response(message('Hi'))))
  const world = profile({
    baseUrl: server.url,
    accessTokenCommand: `tr '\\0' ' ' < /proc/$PPID/cmdline > cmdline; echo ${token}`,
  })
  expect((await execute(['chat', 'hello'], world)).out).toBe('Hi\n')
  expect(readText(world.cwd, 'cmdline')).toMatch(/parley\.cjs chat hello $/)
  expect(server.requests[0]).toContain(`Authorization: Bearer ${token}`)
})

test('K04: -v prints headers and URLs without their secrets', async () => {
  const location = 'https://user:canary@b.test/?a=1&key=canary&access_token=canary'
  const headers = { 'set-cookie': 'session=canary', location, 'x-auth-token': 'canary' }
  const exchange = answering(message('Hi'), { headers })
  const secrets = ['Cookie: a=canary', 'Proxy-Authorization: Basic canary', 'X-Goog-Api-Key: canary']
  const argv = ['chat', 'x', '-v', '-H', 'X-Trace: 1', ...secrets.flatMap((line) => ['-H', line])]
  const ended = await run(argv, { exchange })
  expect(ended).toMatchObject({ code: 0, out: 'Hi\n' })
  expect(ended.err).not.toContain('canary')
  expect(ended.err.replace(/\d+ (bytes|ms)/g, 'N $1').split('\n')).toEqual([
    '> POST https://gateway.test/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent',
    '> Authorization: Bearer [redacted]',
    '> Content-Type: application/json',
    '> Accept: application/json',
    '> Accept-Encoding: identity',
    `> User-Agent: parley-cli/${version}`,
    '> X-Trace: 1',
    '> Cookie: [redacted]',
    '> Proxy-Authorization: Basic [redacted]',
    '> X-Goog-Api-Key: [redacted]',
    '> (N bytes)',
    '< 200 (after N ms)',
    '< content-type: application/json',
    '< set-cookie: [redacted]',
    '< location: https://[redacted]@b.test/?a=1&key=[redacted]&access_token=[redacted]',
    '< x-auth-token: [redacted]',
    'parley: the id of the answer: msg_1',
    '',
  ])
})

test.each([
  ['verbatim', token, token],
  ['in JSON', 'canary"quoted\\', JSON.stringify('canary"quoted\\')],
])('K05: parley never prints a token that the service repeats %s', async (_, secret, echoed) => {
  const env = { PARLEY_ACCESS_TOKEN: secret }
  for (const body of [JSON.stringify({ error: { message: echoed } }), `${'y'.repeat(3600)}${echoed}`]) {
    for (const flags of [[], ['--errors', 'json'], ['-v']]) {
      const exchange = answering(body, { status: 400, headers: { 'x-echo': echoed } })
      const ended = await run(['chat', 'x', ...flags], { env, exchange })
      expect(ended).toMatchObject({ code: 4, out: '' })
      expect(ended.err).not.toContain('canary')
    }
  }
})

test.each([
  '{"type":"error","error":{"type":"authentication_error","message":"no canary-secret"}}',
  'no canary-secret',
])('the result of a failed batch line redacts a token that a 200 response repeats: %s', async (body) => {
  const ended = await run(['chat', '--batch', '-'], {
    stdin: '"x"\n',
    env: { PARLEY_ACCESS_TOKEN: 'canary-secret' },
    exchange: answering(body),
  })
  expect(JSON.parse(ended.out)).toMatchObject({ ok: false, error: { status: 200 } })
  expect(JSON.stringify(JSON.parse(ended.out).error.body)).toContain('no [redacted]')
  expect(ended.out + ended.err).not.toContain('canary')
})

test('K07, G07: parley reports an uncaught error with its kind and position, never with its content', async () => {
  const cwd = temporaryFolder()
  const throwing = preloading(`const { existsSync } = require('node:fs')
    setInterval(() => { if (existsSync('sent')) throw Object.assign(new Error('canary'), { data: 'canary' }) }, 20)`)
  const server = await serve(() => writeFileSync(join(cwd, 'sent'), ''))
  const env = { ...envFor(server), ...throwing }
  const ended = await execute(['chat', 'x', '--no-stdin'], { cwd, env })
  expect(ended).toMatchObject({ code: 1, out: '' })
  expect(ended.err).toMatch(
    /^parley: a bug in parley \S+: Error at preload\.cjs:\d+:\d+\n {2}please report [^\n]*; the request was sent; it may have been carried out\n$/,
  )
})

test('K42: parley redacts a header that contains a credential, whatever its name', async () => {
  const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl'
  const basic = `Basic ${Buffer.from('user:canary').toString('base64')}`
  const lines = [`X-Forward: Bearer canary`, `X-Upstream: ${basic}`, `X-Assertion: ${jwt}`, 'X-Plan: basic']
  const headers = { 'x-echo': `Bearer other-canary`, 'x-whose': jwt }
  for (const flag of ['--dry-run', '--curl', '-v']) {
    const argv = ['chat', 'x', flag, ...lines.flatMap((line) => ['-H', line])]
    const { out, err } = await run(argv, { exchange: answering(message('Hi'), { headers }) })
    expect(out + err).not.toMatch(/canary|eyJ|dXNlcjp/)
    expect(out + err).toMatch(/X-Plan: basic|"X-Plan": "basic"/)
    if (flag === '--curl') expect(out).toContain('"X-Forward: $X_FORWARD"')
  }
})

test('K09: parley rejects a URL with a password from every source, and never prints the password', async () => {
  const address = 'https://user:canary@a.test'
  const inFile = profile({ baseUrl: address })
  const runs = [
    await run(['config', 'set', 'baseUrl', address]),
    await run(['chat', 'x', '--base-url', address]),
    await run(['chat', 'x'], { env: { PARLEY_BASE_URL: address } }),
    await run(['chat', 'x'], inFile),
    await run(['config', 'list'], inFile),
    await run(['config', 'list', '--effective'], inFile),
  ]
  expect(runs.map(({ code }) => code)).toEqual([2, 3, 3, 3, 0, 0])
  for (const { out, err } of runs) expect(out + err).not.toContain('canary')
})

test('K11: no file but config.json contains a secret (needs grep)', async () => {
  const cwd = temporaryFolder()
  const env = { ...noSettings, TMPDIR: cwd }
  await execute(['config', 'set', 'baseUrl', 'http://127.0.0.1:8'], { cwd, env })
  await execute(['config', 'set', 'accessToken'], { cwd, env, stdin: token })
  await execute(['chat', 'x', '--retries', '0'], { cwd, env })
  const { stdout } = spawnSync('grep', ['-rl', 'canary', '.'], { cwd, encoding: 'utf8' })
  expect(stdout).toBe(`./${configFolder}/config.json\n`)
})

test('C18: config prints only the last four characters of a secret, or the whole secret with --reveal', async () => {
  const world = profile({ accessToken: token, apiKey: 'short' })
  for (const argv of [['get', 'accessToken'], ['list'], ['list', '--effective']]) {
    const ended = await run(['config', ...argv], world)
    expect(ended.out).toContain('…1111')
    expect(ended.out).not.toContain('canary')
    expect(ended.out).not.toContain('short')
  }
  expect((await run(['config', 'get', 'accessToken'], world)).err).toContain('--reveal prints it')
  const revealed = await run(['config', 'get', 'accessToken', '--reveal'], world)
  expect(revealed).toMatchObject({ out: `${token}\n`, err: '' })
})

test('K02: parley removes the newline at the end of a secret', async () => {
  const given = `${token}\n`
  const inFile = profile({ baseUrl: 'https://a.test', accessToken: given })
  for (const world of [{ env: { PARLEY_ACCESS_TOKEN: given } }, inFile])
    expect(sentToken(await run(['chat', 'x'], world))).toBe(`Bearer ${token}`)
})

const unsafe = ['a\r\nX-Evil: canary', 'a\ncanary', 'two canary']
test.each(unsafe)('K03: parley names the source of a secret that no header can have: %j', async (secret) => {
  const inFile = profile({ baseUrl: 'https://a.test', accessToken: secret })
  const printed = profile({ baseUrl: 'https://a.test', accessTokenCommand: 'tr "\\n" " " < secret' })
  writeFileSync(join(printed.cwd, 'secret'), secret)
  for (const [world, place] of [
    [{ env: { PARLEY_ACCESS_TOKEN: secret } }, 'PARLEY_ACCESS_TOKEN'],
    [inFile, "'accessToken' in profile 'default'"],
    [printed, "accessTokenCommand (profile 'default')"],
  ] as const) {
    const ended = await run(['chat', 'x'], world)
    expect(ended).toMatchObject(rejected(3, place))
    expect(ended.err).not.toContain('canary')
  }
})

test("K12: parley does not send a profile's secret to an address from the environment", async () => {
  const world = profile({ baseUrl: 'https://a.test', accessToken: token })
  const env = { ...noSettings, PARLEY_BASE_URL: 'https://evil.test' }
  const ended = await run(['chat', 'x'], { ...world, env })
  expect(ended).toMatchObject({ code: 3, out: '', requests: [] })
  expect(ended.err).toContain("the secret of profile 'default' is not sent to the address in PARLEY_BASE_URL")
  const command = profile({ accessTokenCommand: 'touch ran; echo t' })
  expect((await run(['chat', 'x'], { ...command, env })).code).toBe(3)
  expect(existsSync(join(command.cwd, 'ran'))).toBe(false)
})

test("K12: parley sends a profile's secret to an address from a flag, and stderr names both", async () => {
  const world = profile({ baseUrl: 'https://a.test', accessToken: token })
  const ended = await run(['chat', 'x', '--base-url', 'http://127.0.0.1:8'], world)
  expect(ended.code).toBe(0)
  expect(ended.requests[0]?.url).toMatch(/^http:\/\/127\.0\.0\.1:8\//)
  expect(sentToken(ended)).toBe(`Bearer ${token}`)
  const note = "the secret of profile 'default' is sent to 127.0.0.1:8, the address in --base-url"
  expect(ended.err).toBe(`parley: ${note}\n`)
})

test.each([
  ['no access token', { PARLEY_BASE_URL: 'https://a.test' }, [], 'PARLEY_ACCESS_TOKEN'],
  ['no address and no access token', {}, [], 'PARLEY_BASE_URL and PARLEY_ACCESS_TOKEN'],
  ['no address', {}, ['-H', 'Authorization: Bearer own'], 'PARLEY_BASE_URL'],
])('K17: with %s, parley exits with 3 and names all ways to set it', async (missing, env, flags, names) => {
  const ended = await run(['chat', 'x', ...flags], { env: { ...noSettings, ...env } })
  const advice = `'parley config init' asks for the missing settings, or set ${names}, or try '--profile demo'`
  expect(ended).toMatchObject(rejected(3, `parley: ${missing} for the gateway: ${advice}\n`))
})

const inProfile = "profile 'default', accessToken: 'parley config set accessToken' replaces it"

const byCommand =
  "profile 'default', accessTokenCommand: 'parley config set accessTokenCommand COMMAND' replaces it"
const inEnvironment = { PARLEY_ACCESS_TOKEN: 'canary-env-token' }
const named = ['--profile', 'default']

test.each([
  ['the environment', inEnvironment, [], {}, 'PARLEY_ACCESS_TOKEN: change it there'],
  ['the current profile', {}, [], {}, inProfile],
  ['the profile of --profile', inEnvironment, named, {}, inProfile.replace('set', 'set --profile default')],
  ['a command', {}, [], { accessToken: undefined, accessTokenCommand: 'echo canary-echoed' }, byCommand],
])('K16: the message of a 401 names the refused secret from %s', async (_, env, flags, values, source) => {
  const world = profile({ baseUrl: 'https://a.test', accessToken: token, ...values })
  const exchange = answering('{"error":{"message":"no"}}', { status: 401 })
  const ended = await run(['chat', 'x', ...flags], { ...world, env: { ...noSettings, ...env }, exchange })
  const err = `parley: the gateway answered 401\n  the refused secret is from ${source}\n  the service says: no\n`
  expect(ended).toMatchObject({ code: 3, err })
})

const from = (accessTokenCommand: string) => profile({ baseUrl: 'https://a.test', accessTokenCommand })

test.each([
  ['the first line that accessTokenCommand prints', `printf '${token}\\nsecond\\n'`],
  ['the output of accessTokenCommand that reads an empty stdin', `cat; echo ${token}`],
])('parley uses %s as the secret (needs sh)', async (_, command) => {
  const ended = await run(['chat', 'x'], { ...from(command), stdin: 'more' })
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(sentToken(ended)).toBe(`Bearer ${token}`)
})

const failed = 'failed with exit code 4\n  the command printed: no^[[31m such item'
test.each([
  ['echo canary; echo "no\x1b[31m such item" >&2; exit 4', failed],
  ['true', 'printed nothing'],
])('with -q, parley prints why accessTokenCommand gave no secret: %s (needs sh)', async (command, why) => {
  const ended = await run(['chat', 'x', '-q'], from(command))
  expect(ended).toMatchObject(rejected(3, `parley: accessTokenCommand (profile 'default') ${why}\n`))
  expect(ended.err).not.toContain('canary')
})

test('parley prints the redacted stderr of a failed accessTokenCommand, but not with --errors json or in the report (needs sh)', async () => {
  const world = from('set -x; proof=canary-proof; echo canary-printed; false')
  const asJson = await run(['chat', 'x', '--errors', 'json', '--report', 'r.json'], world)
  expect(asJson.err + readText(world.cwd, 'r.json')).not.toContain('canary')
  const { err } = await run(['chat', 'x'], world)
  expect(err).toContain('failed with exit code 1\n  the command printed: ')
  expect(err).toContain('echo [redacted]')
})

test.each([
  [75, 'later'],
  [74, 'never'],
])('if accessTokenCommand exits with %i, `retry` is "%s" (needs sh)', async (exit, retry) => {
  const ended = await run(['chat', 'x', '--errors', 'json'], from(`exit ${exit}`))
  expect(ended).toMatchObject({ code: 3, out: '', requests: [] })
  const error = { kind: 'credentials', sent: 'no', safeToRetry: retry === 'later', retry }
  expect(JSON.parse(ended.err).error).toMatchObject(error)
})

test('parley runs accessTokenCommand only if it sends the secret (needs sh)', async () => {
  const world = from('touch ran; echo t')
  const lines = ['chat x --curl', 'chat x --base-url http://a.test', 'config list --effective']
  lines.push('chat x -H Authorization:x', 'config get accessTokenCommand')
  for (const line of lines) await run(line.split(' '), world)
  expect((await run(['chat', 'x', '--dry-run'], world)).out).toContain('"Bearer [redacted]"')
  expect(existsSync(join(world.cwd, 'ran'))).toBe(false)
})

test('K15: accessTokenCommand gets the environment without secrets (needs sh)', async () => {
  const world = from('env > environment; echo t')
  const env = { ...noSettings, PARLEY_API_KEY: 'canary-key', PARLEY_TIMEOUT: '5', OWN: 'kept' }
  await run(['chat', 'x'], { ...world, env })
  const environment = readText(world.cwd, 'environment')
  expect(environment).not.toContain('canary')
  expect(environment).toContain('OWN=kept')
})
