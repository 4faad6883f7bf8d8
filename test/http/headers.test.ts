import { expect, test } from 'vitest'
import { answering, rejected, run, temporaryFolder } from '../harness/run.ts'

const withHeaders = (...headers: string[]) =>
  run(['chat', 'hi', ...headers.flatMap((header) => ['-H', header])])

test.each([
  ['X-Tag', ['X-Tag: a', 'x-tag: b', 'X-TAG: c, d'], 'a, b, c, d'],
  ['Accept', ['Accept: a/b', 'accept: c/d'], 'a/b, c/d'],
  ['Cookie', ['Cookie: a=1', 'cookie: b=2'], 'a=1; b=2'],
  ['X-Tag', ['X-Tag:', 'X-Tag: b'], 'b'],
])('parley joins the values of the header %s that several -H give: %j', async (name, headers, value) => {
  const { code, requests } = await withHeaders(...headers)
  expect(code).toBe(0)
  expect(requests[0]?.headers).toMatchObject({ [name]: value })
})

test('parley sends a header named like a member of Object.prototype', async () => {
  const { requests } = await withHeaders('constructor: a', '__proto__: b', '__proto__: c')
  const sent = Object.entries(requests[0]?.headers ?? {}).map((header) => header.join(': '))
  expect(sent).toEqual(expect.arrayContaining(['constructor: a', '__proto__: b, c']))
})

test.each(['X-A: 1\nX-B: 2', 'X-A: 1\r\nX-B: 2\r\n'])('-H with two lines exits with 2: %j', async (text) => {
  const cwd = temporaryFolder({ headers: text })
  for (const value of ['@headers', text]) {
    const name = value === text ? '--header' : value
    const message = `parley: ${name}: has several lines. Repeat -H, with one header each\n`
    expect(await run(['chat', 'hi', '-H', value], { cwd })).toMatchObject(rejected(2, message))
  }
})

const cwd = temporaryFolder({ line: 'X-Assertion: canary-assertion\n', value: 'canary-assertion\n' })

const fromFile = ['@line', 'X-Assertion: @value', 'X-Assertion:@value']
test.each(fromFile)('parley sends the value of -H "%s" and prints it nowhere', async (line) => {
  const exchange = answering('{"error":{"message":"not canary-assertion"}}', { status: 400 })
  const send = (...flags: string[]) => run(['chat', 'hi', '-H', line, ...flags], { cwd, exchange })
  for (const flags of [['-v'], ['--errors', 'json'], ['--curl'], ['--dry-run']]) {
    const { out, err, requests } = await send(...flags)
    expect(out + err).not.toContain('canary-assertion')
    for (const { headers } of requests) expect(headers).toMatchObject({ 'X-Assertion': 'canary-assertion' })
  }
  expect((await send('--curl')).out).toContain('"X-Assertion: $X_ASSERTION"')
})

test('-H "NAME: @@TEXT" sends @TEXT', async () => {
  const { requests } = await withHeaders('X-A: @@b', 'X-B: c@d')
  expect(requests[0]?.headers).toMatchObject({ 'X-A': '@b', 'X-B': 'c@d' })
})

test.each([
  ['--dry-run', 'chat'],
  ['--curl', 'chat'],
  ['--dry-run', 'image'],
])('%s of %s redacts a token that was given as the model', async (how, command) => {
  for (const token of ['canary-token-0123456789', 'canary+token/0123456789=']) {
    const { out, err } = await run([command, 'hi', '-m', token, how], { env: { PARLEY_ACCESS_TOKEN: token } })
    expect(out + err).not.toContain(token)
    expect(out + err).not.toContain(encodeURIComponent(token))
    expect(out).toContain('/models/[redacted]:generateContent')
  }
})

const answer = (status: number, body: string) => answering(body, { status })
const url = 'https://gateway.test/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
test.each([
  [404, '{"error":{"message":"no such model"}}'],
  [405, '<html></html>'],
  [404, ''],
])('the message of a %i with the body %j names model, address and family', async (status, body) => {
  const { code, err } = await run(['chat', 'x'], { exchange: answer(status, body) })
  expect(code).toBe(4)
  expect(err).toContain(
    `  check the model 'alpha-2.5-pro', baseUrl (PARLEY_BASE_URL) and family 'alpha' (the default, which may not be this gateway's); the URL was ${url}\n`,
  )
})

test('after a 404 or 405, parley prints the URL and the setting that contains its address', async () => {
  const body = '{"error":{"message":"no such session"}}'
  const list = await run(['events', 'list', '-s', 'sesn_1'], { exchange: answer(404, body) })
  expect(list.err).toContain(
    "  'parley sessions list' lists the sessions; the URL was https://agents.test/v1/sessions/sesn_1/events, from agentsUrl (PARLEY_AGENTS_URL)\n",
  )
  const task = await run(['events', 'run', 'x', '-s', 'sesn_1'], { exchange: answer(404, body) })
  expect(task.err).toContain("  nothing was sent\n  'parley sessions list' lists the sessions; the URL was ")
  const refused = await run(['events', 'run', 'x', '-s', 'sesn_1'], { exchange: answer(405, body) })
  expect(refused.err).toContain(
    '  nothing was sent\n  the URL was https://agents.test/v1/sessions/sesn_1/events',
  )
  const sessions = await run(['sessions', 'list'], { exchange: answer(404, body) })
  expect(sessions.err).toContain('  the URL was https://agents.test/v1/sessions, from agentsUrl')
  const api = await run(['api', 'gateway', '/v1/x'], { exchange: answer(405, body) })
  expect(api.err).toContain('  the URL was https://gateway.test/v1/x, from baseUrl (PARLEY_BASE_URL)\n')
})
