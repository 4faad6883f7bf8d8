import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answerInOrder, breaking, unanswered } from '../harness/responses.ts'
import type { RunOptions } from '../harness/run.ts'
import { answering, createInterrupt, readText, rejected, run, temporaryFolder } from '../harness/run.ts'
import { createFailingStdout } from '../harness/stdout.ts'

const hash = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

const api = (words: string[], world?: RunOptions) => run(['api', ...words], world)

describe('request of api', () => {
  test.each([
    [['gateway', '/v1/m'], 'GET https://gateway.test/v1/m'],
    [['agents', 'v1/x?limit=2&a=%2F'], 'GET https://agents.test/v1/x?limit=2&a=%2F'],
    [['agents', '/v1//x/a%2Fb;p=1'], 'GET https://agents.test/v1//x/a%2Fb;p=1'],
    [['agents', 'https://agents.test/v1/x'], 'GET https://agents.test/v1/x'],
    [['agents', 'https://agents.test'], 'GET https://agents.test/'],
    [['agents', '/v1/x', '-X', 'DELETE'], 'DELETE https://agents.test/v1/x'],
    [['gateway', '/v1/m', '--set', 'a.b=1'], 'POST https://gateway.test/v1/m'],
    [['gateway', '/v1/m?q={x}', '-X', 'PUT', '--set', 'a=1'], 'PUT https://gateway.test/v1/m?q={x}'],
  ])('api %j sends %s', async (words, expected) => {
    const { code, requests } = await api(words, { exchange: answering('{}') })
    expect(code).toBe(0)
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual([expected])
  })

  test('api sends the credential and the headers of its service', async () => {
    const agents = await api(['agents', '/v1/x', '-H', 'x-a: b'], { exchange: answering('{}') })
    expect(agents.requests[0]?.headers).toMatchObject({
      'x-api-key': 'canary-key-0123456789',
      'vendor-version': '2023-06-01',
      'x-a': 'b',
    })
    const gateway = await api(['gateway', '/v1/x'], { exchange: answering('{}') })
    expect(gateway.requests[0]?.headers).toMatchObject({ Authorization: 'Bearer canary-token-0123456789' })
    expect(gateway.requests[0]?.headers).not.toHaveProperty('vendor-version')
  })

  test('api sends the body byte for byte, and --set changes only the named field', async () => {
    const body = '{"n":1.10, "b":12345678901234567890,\n "__proto__":1}'
    const world = { stdin: body, exchange: answering('{}') }
    const plain = await api(['gateway', '/v1/m', '-i', '-'], world)
    expect(plain.requests[0]?.text).toBe(body)
    const changed = await api(['gateway', '/v1/m', '-i', '-', '--set', 'n=2'], world)
    expect(changed.requests[0]?.text).toBe(body.replace('1.10', '2'))
  })

  test('api sends a body of any type that a header declares', async () => {
    const stdin = Uint8Array.from([0, 255, 10])
    const words = ['gateway', '/v1/files', '-i', '-', '-H', 'Content-Type: application/octet-stream']
    const { requests } = await api(words, { stdin, exchange: answering('{}') })
    expect([...(requests[0]?.body ?? [])]).toEqual([...stdin])
  })

  test.each([
    ['a body that is not JSON', ['gateway', '/v1/m', '-i', '-'], 'not valid JSON'],
    ['a body with GET', ['gateway', '/v1/m', '-X', 'GET', '-i', '-'], 'GET cannot send a body'],
    ['an unknown service', ['gatewai', '/v1/m'], "'gatewai' is not one of gateway, agents"],
    ['--paginate with POST', ['gateway', '/v1/m', '-X', 'POST', '--paginate'], 'only with the method GET'],
    ['--paginate with --include', ['gateway', '/v1/m', '--paginate', '--include'], 'exclude each other'],
    ...['GE T', 'GET\r\nX: y', 'CONNECT', ''].map((method): [string, string[], string] => [
      `the method ${JSON.stringify(method)}`,
      ['agents', '/v1/x', '-X', method],
      'parley: --method: ',
    ]),
    ...[
      ...['/v1/../x', '/v1/%2e%2e/x', '/v1/%252e%252e/x', '/v1/a\\..\\b', '/v1/..;/x', '/v1/é', '/v1/a\nb'],
      ...['/v1/x#f', '', 'https://agents.test.evil/v1/x', 'https://evil.test/v1/x'],
    ].map((path): [string, string[], string] => [`the path ${path}`, ['agents', path], 'path']),
  ])('A05, A07: api exits with 2 for %s', async (_, words, problem) => {
    expect(await api(words, { stdin: '{"a":' })).toMatchObject(rejected(2, problem))
  })

  test('api --dry-run and --curl show the request and send nothing', async () => {
    const shown = await api(['gateway', '/v1/m', '--set', 'a=1', '--dry-run'])
    expect(shown).toMatchObject({ code: 0, requests: [] })
    expect(JSON.parse(shown.out)).toMatchObject({ method: 'POST', body: { a: 1 } })
    const curl = await api(['agents', '/v1/m', '-X', 'PATCH', '--set', 'a=1', '--curl'])
    expect(curl.out).toContain('--request PATCH https://agents.test/v1/m')
    const bytes = await api(['gateway', '/v1/m', '-i', '-', '-H', 'content-type: a/b', '--curl'], {
      stdin: Uint8Array.from([255]),
    })
    expect(bytes).toMatchObject({ code: 2, out: '' })
    const secret = await api(['gateway', '/v1/m?api_key=canary', '--dry-run'])
    expect(secret.out).not.toContain('canary')
  })
})

describe('output of api', () => {
  const odd = Buffer.concat([Buffer.from([0, 255, 254, 13, 10]), Buffer.from('{"n":1.10,"n":-0,"b":1e400}')])

  test.each([200, 404, 500])('A01: api prints any body byte for byte, with status %i', async (status) => {
    const ended = await api(['gateway', '/v1/m', '--retries', '0'], { exchange: answering(odd, { status }) })
    expect(hash(ended.outBytes)).toBe(hash(odd))
    expect(ended.code).toBe({ 200: 0, 404: 4, 500: 7 }[status])
  })

  test('if a response with status 200 contains an error, api exits with the exit code for this error, and -o writes no file', async () => {
    const body = '{"error":{"type":"overloaded_error"}}'
    const plain = await api(['agents', '/v1/x'], { exchange: answering(body) })
    expect(plain).toMatchObject({ code: 7, out: body })
    const cwd = temporaryFolder()
    for (const [flags, head] of [
      [[], ''],
      [['--include'], 'HTTP/1.1 200\ncontent-type: application/json\n\n'],
    ] as const) {
      const filed = await api(['agents', '/v1/x', '-o', 'a', ...flags], { cwd, exchange: answering(body) })
      expect(filed).toMatchObject({ code: 7, out: head + body })
      expect(filed.err).not.toContain('kept')
      expect(readdirSync(cwd)).toEqual([])
    }
  })

  const limited = ': hi\n\nevent: error\ndata: {"error":{"code":429}}\n\n'
  test.each([
    ['exits with 6 if its only event is an error with the code 429', limited, 6],
    ['exits with 0 if there are several events', 'data: {"message":"a"}\n\ndata: {"message":"b"}\n\n', 0],
    ['exits with 0 if it is an error of a session', 'data: {"type":"session.error","error":{}}\n\n', 0],
  ])('for an event stream with status 200, api %s', async (_, body, code) => {
    const exchange = answering(body, { headers: { 'content-type': 'text/event-stream' } })
    expect(await api(['agents', '/v1/x'], { exchange })).toMatchObject({ code, out: body })
  })

  test.each([200, 404])('api --include prints the headers of a %i before the body', async (status) => {
    const exchange = answering('{}', { status, headers: { 'x-a': 'b' } })
    const ended = await api(['agents', '/v1/x', '--include'], { exchange })
    expect(ended.out).toBe(`HTTP/1.1 ${status}\ncontent-type: application/json\nx-a: b\n\n{}`)
  })

  test('api -o writes a file only for a complete 2xx response', async () => {
    const cwd = temporaryFolder()
    const file = join(cwd, 'a.json')
    writeFileSync(file, 'old')
    const get = ['agents', '/v1/x', '-o', 'a.json']
    const refused = await api(get, { cwd, exchange: answering('no', { status: 404 }) })
    expect(refused).toMatchObject({ code: 4, out: 'no' })
    expect(readFileSync(file, 'utf8')).toBe('old')
    expect(await api(get, { cwd, exchange: answering('new') })).toMatchObject({ code: 0, out: '' })
    expect(readFileSync(file, 'utf8')).toBe('new')
  })

  test('A20: on a terminal api prints JSON as received, with control characters escaped', async () => {
    const exchange = answering('{"b":1.10, "a":"\\u00e9\u009b2J"}')
    const world = { tty: ['stdout' as const], exchange }
    for (const flags of [[], ['--raw']])
      expect((await api(['agents', '/x', ...flags], world)).out).toBe('{"b":1.10, "a":"\\u00e9\\u009b2J"}\n')
  })
})

test('if a signal ends api, the message names the file in which api saved the received body', async () => {
  const cwd = temporaryFolder()
  const { onSignal, interrupt } = createInterrupt()
  const stdout = createFailingStdout(0, 'ENOSPC')
  const message = await new Promise<string>((resolve) => {
    const exchange = breaking('paid', () => {
      resolve(interrupt(143))
      return new Promise(() => {})
    })
    void api(['gateway', '/v1/m', '--set', 'a=1'], { cwd, env: { TMPDIR: cwd }, exchange, stdout, onSignal })
  })
  const [name = ''] = readdirSync(cwd)
  expect(readText(cwd, name)).toBe('paid')
  expect(message).toContain(`; the received data is saved as ${join(cwd, name)}\n`)
})

test('A03: api prints the received part of a body that is cut off', async () => {
  const cwd = temporaryFolder()
  const exchange = breaking(
    '{"a":"who',
    () => new CliError('response', 'the answer broke off', { isCutOff: true }),
  )
  expect(await api(['agents', '/v1/x'], { exchange })).toMatchObject({ code: 8, out: '{"a":"who' })
  const filed = await api(['agents', '/v1/x', '-o', 'a'], { cwd, exchange })
  expect(filed).toMatchObject({ code: 8, out: '' })
  expect(filed.err).toContain('the received data is saved as a.part')
  expect([readdirSync(cwd), readText(cwd, 'a.part')]).toEqual([['a.part'], '{"a":"who'])
})

const failing = answering('', { status: 500 })

test.each([
  ['a GET', []],
  ['a POST if --retry-unknown is set', ['--set', 'a=1', '--retry-unknown']],
])('T23: after a 500 and a missing answer, api retries %s', async (_, flags) => {
  const exchange = answerInOrder(failing, unanswered, '{"ok":1}')
  const { code, out, requests } = await api(['agents', '/v1/x', ...flags], { exchange })
  expect([code, out, requests.length]).toEqual([0, '{"ok":1}', 3])
  expect(new Set(requests.map(({ method, url, text }) => `${method} ${url} ${text}`)).size).toBe(1)
})

test.each([
  ['POST', ['--set', 'a=1']],
  ['DELETE', ['-X', 'DELETE']],
])('T23: api does not retry a %s after a 500 or a missing answer', async (_, flags) => {
  const call = (exchange: Exchange) =>
    api(['agents', '/v1/x', ...flags], { exchange: answerInOrder(exchange) })
  expect(await call(failing)).toMatchObject({ code: 7 })
  const err = expect.stringContaining('it is not known whether it was carried out')
  expect(await call(unanswered)).toMatchObject({ code: 10, out: '', err })
})

test('api --paginate requests pages until the last one and prints each item as a line', async () => {
  const pages = [
    { data: [{ id: 1 }, { id: 2 }], next_page: 'p 2' },
    { data: [], next_page: 3 },
    { data: [{ id: 3 }], has_more: true, last_id: 'x/3' },
    { data: [{ id: 4 }], next_page: null },
  ]
  const exchange = answerInOrder(...pages.map((page) => JSON.stringify(page)))
  const { code, out, requests } = await api(['agents', '/v1/x?limit=2&page=0', '--paginate'], { exchange })
  expect({ code, out }).toEqual({ code: 0, out: '{"id":1}\n{"id":2}\n{"id":3}\n{"id":4}\n' })
  expect(requests.map(({ url }) => url.slice('https://agents.test/v1/x'.length))).toEqual([
    '?limit=2&page=0',
    '?limit=2&page=p%202',
    '?limit=2&page=3',
    '?limit=2&after_id=x%2F3',
  ])
})

const page = '{"data":[{"id":1}],"next_page":"p2"}'
const refusal = '{"error":{"type":"not_found_error","message":"no"}}'
test.each([
  ['prints the body of an error', [], refusal],
  ['prints no body of an error after items', [page], '{"id":1}\n'],
])('api --paginate %s', async (_, pages, out) => {
  const exchange = answerInOrder(...pages, answering(refusal, { status: 404 }))
  expect(await api(['agents', '/v1/x', '--paginate'], { exchange })).toMatchObject({ code: 4, out })
})

test('api gets a new key from the key command each time that the service refuses a key that has worked (needs sh)', async () => {
  const env = {
    PARLEY_API_KEY: '',
    PARLEY_API_KEY_COMMAND: 'echo x >> runs; echo key-$(wc -l < runs | tr -d " ")-0123456789',
    PATH: process.env.PATH ?? '',
  }
  const cwd = temporaryFolder()
  let count = 0
  const exchange: Exchange = (request) => {
    const page = count + 1
    // Each key is valid for one page.
    const isValid = request.headers['x-api-key'] === `key-${page}-0123456789`
    if (isValid) count++
    const body = isValid ? { data: [{ id: page }], next_page: page < 3 ? page : null } : {}
    return answering(JSON.stringify(body), { status: isValid ? 200 : 401 })(request)
  }
  const ended = await api(['agents', '/v1/x', '--paginate', '--retries', '0'], { cwd, env, exchange })
  expect(ended).toMatchObject({ code: 0, out: '{"id":1}\n{"id":2}\n{"id":3}\n' })
  expect(readText(cwd, 'runs')).toBe('x\nx\nx\n')
})
