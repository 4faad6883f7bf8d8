import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { version } from '../../package.json'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering, run } from '../harness/run.ts'

const evil = 'a\x1b[2J\u009b\u202eb\r\'\\ x\ty\n"z"'
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'é\u009b\u202e' }] }] })

test('K30: --dry-run redacts and --curl omits a header whose name looks like a credential', async () => {
  const names = [
    ...['X-Goog-Api-Key', 'Subscription-Key-Id', 'X-Tokens', 'X-Amz-Security-Token-2', 'x-secret-id'],
    ...['X-Authentication', 'x-authz', 'X-Password-Hash', 'Cookie', 'Set-Cookie2', 'X-Credential'],
    ...['X-Signature-V4', 'X-RateLimit-Bypass-Token'],
  ]
  const flags = names.flatMap((name) => ['-H', `${name}: canary-${name}`])
  const dry = await run(['chat', 'x', '--dry-run', ...flags])
  expect(dry.out).not.toContain('canary')
  const { headers } = JSON.parse(dry.out)
  for (const name of names) expect(headers[name]).toBe('[redacted]')
  const curl = await run(['chat', 'x', '--curl', ...flags])
  expect(curl.out).not.toContain('canary')
  expect(curl.out).toContain('"X-Goog-Api-Key: $X_GOOG_API_KEY"')
})

// On a terminal, the command has $'…', which bash and zsh support, but not sh.
test.each([
  ['bash', 'bash'],
  ['zsh', 'zsh'],
])('V20: --curl prints a terminal command that sends the exact body in %s (needs %s)', async (shell) => {
  const curlArguments = (script: string) => {
    const { stdout } = spawnSync(shell, ['-c', `curl() { printf '%s\\0' "$@"; }\n${script}`])
    return stdout.toString().split('\0')
  }
  for (const text of [evil, "\x1b1'2\\3", '\u20287']) {
    const dry = await run(['chat', text, '--dry-run'])
    const { out } = await run(['chat', text, '--curl'], { tty: ['stdout'] })
    expect(out).not.toMatch(unsafe)
    expect(JSON.parse(curlArguments(out).at(-2) as string)).toEqual(JSON.parse(dry.out).body)
  }
  const { out } = await run(['chat', '-i', '-', '--curl'], { stdin: body, tty: ['stdout'] })
  expect(out).not.toMatch(unsafe)
  expect(curlArguments(out)).toContain(body)
})

test('--curl with the demo profile prints a note that curl cannot send the request', async () => {
  const err = 'parley: curl cannot send this request, because the demo has no network address\n'
  expect(await run(['chat', 'x', '--curl', '--profile', 'demo'])).toMatchObject({ code: 0, err })
})

test('H05: --dry-run and --curl omit a header that -H removes', async () => {
  const flags = ['-H', 'Authorization:', '-H', 'content-type:', '-H', 'Accept:']
  const world = { env: { PARLEY_ACCESS_TOKEN: '' } }
  const { headers } = JSON.parse((await run(['chat', 'x', '--dry-run', ...flags], world)).out)
  expect(headers).toEqual({ 'Accept-Encoding': 'identity', 'User-Agent': `parley-cli/${version}` })
  const { out, err, code } = await run(['chat', 'x', '--curl', ...flags], world)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.match(/--header .*/g)).toEqual([
    "--header 'Accept-Encoding: identity' \\",
    `--header 'User-Agent: parley-cli/${version}' \\`,
    "--header 'Authorization:' \\",
    "--header 'content-type:' \\",
    "--header 'Accept:' \\",
  ])
  const refused = await run(['chat', 'x', ...flags], { ...world, exchange: answering('{}', { status: 401 }) })
  expect(refused).toMatchObject({ code: 3, err: 'parley: the gateway answered 401\n' })
})

test('--curl turns off the buffer of curl only for streams', async () => {
  const lines = ['chat x', 'chat x --stream', 'events follow -s s', 'events list -s s']
  const printed = await Promise.all(lines.map((line) => run([...line.split(' '), '--curl'])))
  expect(printed.map(({ out }) => out.includes('--no-buffer'))).toEqual([false, true, true, false])
})

test('--curl prints the certificates and time limits that parley would use', async () => {
  const flags = ['--cacert', "it's.pem", '--connect-timeout', '500ms', '--deadline', '2m']
  const { out } = await run(['chat', 'x', '--curl', ...flags])
  expect(out).toContain(" \\\n  --cacert 'it'\\''s.pem' \\\n  --connect-timeout 0.5 \\\n  --max-time 120 ")
  expect((await run(['chat', 'x', '--curl'])).out).not.toMatch(/--(cacert|connect|max)/)
})

test('V21: --dry-run escapes control characters on a terminal, and prints exact JSON to a pipe', async () => {
  const spaced = body.replace('{', '{\r').replace('[', '\r\n[')
  const argv = ['chat', '-i', '-', '--dry-run']
  const shown = await run(argv, { stdin: spaced, tty: ['stdout'] })
  const piped = await run(argv, { stdin: spaced })
  expect(shown.out).not.toMatch(unsafe)
  expect(JSON.parse(shown.out)).toEqual(JSON.parse(piped.out))
  expect(piped.out).toContain(spaced)
})

test('V22: events follow quotes the ids in the printed confirm command for the shell (needs bash)', async () => {
  const ids = ['toolu_1', "a'; touch x #", 'two  spaces', 'esc\x1b[2J\n\u202e', '$(id)', '=ls', '~']
  const events = [
    ...ids.map((id) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })),
    { id: 'idle', type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } },
  ]
  const list = answering(JSON.stringify({ data: events }))
  const stream = answering(': quiet\n\n', { headers: { 'content-type': 'text/event-stream' } })
  const exchange: Exchange = (request) => (request.url.endsWith('/stream') ? stream : list)(request)
  const { err } = await run(['events', 'follow', '-s', 'a b;c'], { exchange })
  const [, command] = / {0,1}answer with: (.*) --allow\n/.exec(err) ?? []
  const { stdout } = spawnSync('bash', ['-c', `parley() { printf '%s\\0' "$@"; }\n${command}`])
  expect(stdout.toString().split('\0').slice(0, -1)).toEqual(['events', 'confirm', '-s', 'a b;c', ...ids])
})
