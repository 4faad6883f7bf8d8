import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { StdStream } from '../../src/io/output.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'
import {
  answering,
  credentials,
  ownerOnlyMode,
  type RunOptions,
  run,
  temporaryFolder,
} from '../harness/run.ts'
import { envFor, response, type ScriptedServer, serve } from '../harness/server.ts'
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

  test('api sends the body byte for byte, with flags merged over it', async () => {
    const body = '{"n":1.10, "b":12345678901234567890,\n "__proto__":1}'
    const plain = await api(['gateway', '/v1/m', '-i', '-'], { stdin: body, exchange: answering('{}') })
    expect(plain.requests[0]?.text).toBe(body)
    const changed = await api(['gateway', '/v1/m', '-i', '-', '--set', 'n=2'], {
      stdin: body,
      exchange: answering('{}'),
    })
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
    ['a body with GET', ['gateway', '/v1/m', '-X', 'GET', '-i', '-'], 'GET takes no body'],
    ['an unknown service', ['gatewai', '/v1/m'], "'gatewai' is not one of gateway, agents"],
    ['--paginate with POST', ['gateway', '/v1/m', '-X', 'POST', '--paginate'], '--paginate is for GET only'],
    ['--paginate with --include', ['gateway', '/v1/m', '--paginate', '--include'], 'exclude each other'],
  ])('api exits with 2 for %s', async (_, words, problem) => {
    const ended = await api(words, { stdin: '{"a":' })
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
    expect(ended.err).toContain(problem)
  })

  test.each(['GE T', 'GET\r\nX: y', 'get', 'CONNECT', 'TRACE', ''])(
    'A05: api exits with 2 for the method %j',
    async (method) => {
      const ended = await api(['agents', '/v1/x', '-X', method])
      expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
    },
  )

  test.each([
    '/v1/../x',
    '/v1/./x',
    '..',
    '/v1/%2e%2e/x',
    '/v1/%2E./x',
    '/v1/..%2fx',
    '/v1/%2e%2e%2fx',
    '/v1/%252e%252e/x',
    '/v1/a\\..\\b',
    '/v1/..;/x',
    '/v1/..;a=1/x',
    '/v1/.;/x',
    '/v1/%2e%2e%3bx/y',
    '/v1/..%253b/x',
    '/v1/a b',
    '/v1/é',
    '/v1/a\nb',
    '/v1/a\tb',
    '/v1/x#f',
    '',
    ' ',
    '/v1/x?a b',
    '/v1/x?a#f',
    'https://agents.test.evil/v1/x',
    'https://user@agents.test/v1/x',
    'https://evil.test/v1/x',
    'file:///etc/passwd',
  ])('A07: api exits with 2 for the path %j', async (path) => {
    const ended = await api(['agents', path])
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  })

  test('api --dry-run and --curl show the request and send nothing', async () => {
    const shown = await api(['gateway', '/v1/m', '--set', 'a=1', '--dry-run'])
    expect(shown).toMatchObject({ code: 0, requests: [] })
    expect(JSON.parse(shown.out)).toMatchObject({ method: 'POST', body: { a: 1 } })
    const curl = await api(['agents', '/v1/m', '-X', 'PATCH', '--set', 'a=1', '--curl'])
    expect(curl.out).toContain('--request PATCH https://agents.test/v1/m')
    const text = await api(['gateway', '/v1/m', '-i', '-', '-H', 'content-type: text/plain', '--curl'], {
      stdin: '@x',
    })
    expect(text.out).toContain('--data-raw @x')
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

  test.each([200, 201, 404, 500])(
    'A01: api prints any body byte for byte, with status %i',
    async (status) => {
      const ended = await api(['gateway', '/v1/m', '--retries', '0'], {
        exchange: answering(odd, { status }),
      })
      expect(hash(ended.outBytes)).toBe(hash(odd))
      expect(ended.code).toBe({ 200: 0, 201: 0, 404: 4, 500: 7 }[status])
    },
  )

  test('api exits with the code of an error in a 200, and -o replaces no file', async () => {
    const body = '{"type":"error","error":{"type":"overloaded_error"}}'
    expect(await api(['agents', '/v1/x'], { exchange: answering(body) })).toMatchObject({
      code: 7,
      out: body,
    })
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

  test('api prints an error in a 200 once if -o is a device (needs /dev/full)', async () => {
    const exchange = answering('{"type":"error","error":{"type":"overloaded_error"}}')
    const ended = await api(['agents', '/v1/x', '-o', '/dev/null'], { exchange })
    expect(ended).toMatchObject({ code: 7, out: '' })
  })

  test.each([200, 404])(
    'api --include prints the response headers before the body, with status %i',
    async (status) => {
      const exchange = answering('{}', { status, headers: { 'x-a': 'b' } })
      const ended = await api(['agents', '/v1/x', '--include'], { exchange })
      expect(ended.out).toBe(`HTTP/1.1 ${status}\ncontent-type: application/json\nx-a: b\n\n{}`)
    },
  )

  test('api -o writes a file only for a complete 2xx response', async () => {
    const cwd = temporaryFolder()
    const file = join(cwd, 'a.json')
    writeFileSync(file, 'old')
    const refused = await api(['agents', '/v1/x', '-o', 'a.json'], {
      cwd,
      exchange: answering('no', { status: 404 }),
    })
    expect(refused).toMatchObject({ code: 4, out: 'no' })
    expect(readFileSync(file, 'utf8')).toBe('old')
    expect(await api(['agents', '/v1/x', '-o', 'a.json'], { cwd, exchange: answering('new') })).toMatchObject(
      { code: 0, out: '' },
    )
    expect(readFileSync(file, 'utf8')).toBe('new')
  })

  test('api exits with 11 instead of printing a binary body on a terminal', async () => {
    const ended = await api(['agents', '/v1/x'], { tty: ['stdout'], exchange: answering(odd) })
    expect(ended).toMatchObject({ code: 11, out: '' })
    expect(ended.err).toContain('the answer is not text: redirect stdout, or give -o FILE')
    const refused = await api(['agents', '/v1/x'], {
      tty: ['stdout'],
      exchange: answering(odd, { status: 404 }),
    })
    expect(refused).toMatchObject({ code: 4, out: '' })
    expect(refused.err).toContain('404')
  })

  test('A20: on a terminal api prints JSON as received, with control characters escaped', async () => {
    const exchange = answering('{"b":1.10, "a":"\\u00e9\u009b2J"}')
    const world = { tty: ['stdout' as const], exchange }
    for (const flags of [[], ['--raw']])
      expect((await api(['agents', '/v1/x', ...flags], world)).out).toBe(
        '{"b":1.10, "a":"\\u00e9\\u009b2J"}\n',
      )
  })

  test('A22: api -o writes JSON byte for byte, also if stdout is a terminal', async () => {
    const cwd = temporaryFolder()
    const text = '{"b":1.10, "a":"\u009b2J"}'
    await api(['agents', '/v1/x', '-o', 'a'], { cwd, tty: ['stdout'], exchange: answering(text) })
    expect(readFileSync(join(cwd, 'a'), 'utf8')).toBe(text)
  })
})

describe('body of api that stdout or a file does not accept', () => {
  const post = ['gateway', '/v1/m', '--set', 'a=1']
  const chunks = ['first ', 'second ', 'third']

  async function call(words: string[], world: RunOptions) {
    const cwd = temporaryFolder()
    const ended = await api(words, { cwd, env: { TMPDIR: cwd }, exchange: answering(chunks), ...world })
    const name = readdirSync(cwd).find((file) => file.startsWith('parley-'))
    return {
      ...ended,
      cwd,
      path: name && join(cwd, name),
      saved: name && readFileSync(join(cwd, name), 'utf8'),
    }
  }

  test.each<[string, string[], StdStream, string]>([
    ['a full disk', [], createFailingStdout(0, 'ENOSPC'), 'no space left on the disk'],
    ['a broken device', [], createFailingStdout(0, 'EIO'), 'EIO'],
    [
      'a full disk, with --include',
      ['--include'],
      createFailingStdout(0, 'ENOSPC'),
      'no space left on the disk',
    ],
    [
      'a closed stdout',
      [],
      { ...createFailingStdout(0), isClosed: true },
      'it was closed when parley started',
    ],
    ['an unread pipe until the deadline', ['--deadline', '5'], createFailingStdout(0), 'the deadline passed'],
  ])('api saves the whole body if stdout accepted nothing: %s', async (_, flags, stdout, why) => {
    const {
      code,
      err,
      path = '',
      saved,
    } = await call([...post, ...flags], { stdout, timers: createIdleClock() })
    expect([code, saved]).toEqual([11, 'first second third'])
    expect(err).toContain(`parley: stdout: ${why}`)
    expect(err).toContain(`; the received data is saved as ${path}\n`)
    expect(statSync(path).mode & 0o777).toBe(ownerOnlyMode)
  })

  test('api saves the rest of a partly printed body, and names its first unprinted byte', async () => {
    const { code, err, path, saved } = await call([...post, '--errors', 'json'], {
      stdout: createFailingStdout(1, 'ENOSPC'),
    })
    expect([code, saved]).toEqual([11, 'second third'])
    expect(JSON.parse(err).error).toMatchObject({
      message: `stdout: no space left on the disk; the received data from byte 6 on is saved as ${path}`,
      kept: path,
      sent: 'yes',
    })
  })

  test('api reports that a saved body is cut off', async () => {
    const exchange: Exchange = async (...request) => {
      const response = await answering(chunks)(...request)
      async function* body() {
        yield* response.body
        throw new CliError('response', 'the answer broke off', { isCutOff: true })
      }
      return { ...response, body: body() }
    }
    const { code, err, path, saved } = await call(post, {
      exchange,
      stdout: createFailingStdout(0, 'ENOSPC'),
    })
    expect([code, saved]).toEqual([11, 'first second third'])
    expect(err).toContain(
      `parley: stdout: no space left on the disk; the answer broke off; the received data is saved as ${path}\n`,
    )
  })

  /**
   * Sends a signal to `api` after it has received a body that stdout refuses. Returns its last message and the
   * path of the saved body.
   */
  async function interruptUnprinted(...flags: string[]): Promise<{ message: string; path: string }> {
    const cwd = temporaryFolder()
    let clean: (exit: number) => string = () => ''
    const message = await new Promise<string>((resolve) => {
      const exchange: Exchange = async (...request) => {
        const response = await answering('paid')(...request)
        async function* body() {
          yield* response.body
          resolve(clean(143))
          await new Promise(() => {})
        }
        return { ...response, body: body() }
      }
      const stdout = createFailingStdout(0, 'ENOSPC')
      const onSignal = (act: typeof clean) => {
        clean = act
      }
      void api([...post, ...flags], { cwd, env: { TMPDIR: cwd }, exchange, stdout, onSignal })
    })
    const [name = ''] = readdirSync(cwd)
    expect(readFileSync(join(cwd, name), 'utf8')).toBe('paid')
    return { message, path: join(cwd, name) }
  }

  test('a signal prints the name of the file in which api saved the body', async () => {
    const { message, path } = await interruptUnprinted()
    expect(message).toContain(`; the received data is saved as ${path}\n`)
  })

  test('--errors json has the name of the file in which api saved the body after a signal', async () => {
    const { message, path } = await interruptUnprinted('--errors', 'json')
    expect(JSON.parse(message).error).toMatchObject({ kind: 'signal', exit: 143, kept: path })
  })

  test('api saves a binary body instead of printing it on a terminal', async () => {
    const { code, err, path, saved } = await call(post, { exchange: answering('a\0b'), tty: ['stdout'] })
    expect([code, saved]).toEqual([11, 'a\0b'])
    expect(err).toContain(`redirect stdout, or give -o FILE; the received data is saved as ${path}\n`)
  })

  test('api saves the received JSON that a terminal does not accept', async () => {
    const stdout = { ...createFailingStdout(0, 'EIO'), isTerminal: true }
    const { code, saved } = await call(post, { exchange: answering(['{"a":', '1}']), stdout })
    expect([code, saved]).toEqual([11, '{"a":1}'])
  })

  test('api saves nothing if the reader of stdout closed the pipe', async () => {
    const { code, err, saved } = await call(post, { stdout: createFailingStdout(1, 'EPIPE') })
    expect([code, err, saved]).toEqual([0, '', undefined])
  })
})

describe('api over the network', () => {
  let server: ScriptedServer
  let answers: ((count: number) => Buffer | undefined)[] = []
  beforeAll(async () => {
    server = await serve((socket, _, count) => {
      const answer = answers[Math.min(count, answers.length) - 1]?.(count)
      if (answer) socket.end(answer)
      else socket.resetAndDestroy()
    })
  })
  afterAll(() => server.close())

  async function call(words: string[], script: typeof answers) {
    server.requests.length = 0
    answers = script
    return api(words, { env: envFor(server), exchange: 'network' })
  }

  test('A03: api prints the received part of a body that is cut off', async () => {
    const cut = () => response('{"a":"whole"}').subarray(0, -4)
    const ended = await call(['agents', '/v1/x'], [cut])
    expect(ended).toMatchObject({ code: 8, out: '{"a":"who' })
    const cwd = temporaryFolder()
    const env = envFor(server)
    const filed = await api(['agents', '/v1/x', '-o', 'a'], { cwd, env, exchange: 'network' })
    expect(filed).toMatchObject({ code: 8, out: '' })
    expect(filed.err).toContain('the received data is saved as a.part')
    expect(readFileSync(join(cwd, 'a.part'), 'utf8')).toBe('{"a":"who')
    expect(existsSync(join(cwd, 'a'))).toBe(false)
  })

  const failing = [() => response('', '500 Oops'), () => undefined, () => response('{"ok":1}')]

  test('T23: api retries a GET after a 500 and a reset', async () => {
    expect(await call(['agents', '/v1/x'], failing)).toMatchObject({ code: 0, out: '{"ok":1}' })
    expect(server.requests).toHaveLength(3)
  })

  test.each([
    ['POST', ['--set', 'a=1']],
    ['PATCH', ['--set', 'a=1', '-X', 'PATCH']],
    ['DELETE', ['-X', 'DELETE']],
  ])('T23: api does not retry a %s', async (_, flags) => {
    expect(await call(['agents', '/v1/x', ...flags], failing)).toMatchObject({ code: 7 })
    expect(server.requests).toHaveLength(1)
    const reset = await call(['agents', '/v1/x', ...flags], failing.slice(1))
    expect(reset).toMatchObject({ code: 10, out: '' })
    expect(reset.err).toContain('whether it was carried out is not known')
    expect(server.requests).toHaveLength(1)
  })

  test('T23: api retries a POST with --retry-unknown', async () => {
    const ended = await call(['agents', '/v1/x', '--set', 'a=1', '--retry-unknown'], failing)
    expect(ended).toMatchObject({ code: 0, out: '{"ok":1}' })
    expect(new Set(server.requests).size).toBe(1)
  })

  test('O08: api prints 200 MiB to a slow reader completely in little memory (needs sh)', async () => {
    const size = 200 * 2 ** 20
    const piece = Buffer.alloc(2 ** 20, 'x')
    const big = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
      let left = size
      const send = () => {
        while (left > 0) {
          left -= piece.length
          if (!socket.write(piece)) return socket.once('drain', send)
        }
        return socket.end()
      }
      send()
    })
    const folder = temporaryFolder()
    const script = join(folder, 'usage.cjs')
    writeFileSync(script, "process.on('exit', () => console.error(process.resourceUsage().maxRSS))")
    const command = `exec 3>&2; { "$0" --require "$1" "$2" api agents /v1/x 2>&3; } | { sleep 0.5; wc -c; }`
    const child = spawn('sh', ['-c', command, process.execPath, script, binary], {
      env: { ...childEnvironment, HOME: folder, ...credentials, ...envFor(big) },
    })
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
    await big.close()
    expect(stdout.trim()).toBe(String(size))
    expect(Number(stderr) / 1024).toBeLessThan(150)
  })
})

describe('pages of api', () => {
  /** Answers each request with the next page. */
  function paging(...pages: object[]) {
    let count = 0
    return (request: Parameters<ReturnType<typeof answering>>[0]) =>
      answering(JSON.stringify(pages[count++] ?? {}))(request)
  }

  test('api --paginate requests pages until the last one and prints each item as a line', async () => {
    const exchange = paging(
      { data: [{ id: 1 }, { id: 2 }], next_page: 'p 2' },
      { data: [], next_page: 3 },
      { data: [{ id: 3 }], has_more: true, last_id: 'x/3' },
      { data: [{ id: 4 }], next_page: null },
    )
    const { code, out, requests } = await api(['agents', '/v1/x?limit=2&page=0', '--paginate'], { exchange })
    expect(code).toBe(0)
    expect(out).toBe('{"id":1}\n{"id":2}\n{"id":3}\n{"id":4}\n')
    expect(requests.map(({ url }) => url.slice('https://agents.test/v1/x'.length))).toEqual([
      '?limit=2&page=0',
      '?limit=2&page=p%202',
      '?limit=2&page=3',
      '?limit=2&after_id=x%2F3',
    ])
  })

  test('api --paginate accepts a URL as page token only if the URL belongs to the service', async () => {
    const own = paging({ data: [1], next_page: 'https://agents.test/v1/y?z=1' }, { data: [2] })
    const ended = await api(['agents', '/v1/x', '--paginate'], { exchange: own })
    expect(ended).toMatchObject({ code: 0, out: '1\n2\n' })
    expect(ended.requests[1]?.url).toBe('https://agents.test/v1/y?z=1')
    const other = paging({ data: [1], next_page: 'https://evil.test/v1/y' })
    const refused = await api(['agents', '/v1/x', '--paginate'], { exchange: other })
    expect(refused).toMatchObject({ code: 8, out: '1\n' })
    expect(refused.requests).toHaveLength(1)
  })

  test('api --paginate prints the pages before a page that is cut off', async () => {
    for (const cut of ['{"data":[{"id":2},{"n":1.0},{"id":', '[ {"id":2},\n{"n":1.0} , 3']) {
      let count = 0
      const { code, out, err } = await api(['agents', '/v1/x', '--paginate'], {
        exchange: (request) => answering(count++ === 0 ? '{"data":[1],"next_page":"a"}' : cut)(request),
      })
      expect({ code, out }).toEqual({ code: 8, out: '1\n' })
      expect(err).toContain('the list is not JSON')
    }
  })

  test.each([
    ['without data', [{ items: [] }], "the list has no field 'data'"],
    [
      'whose next_page repeats',
      [
        { data: [1], next_page: 'a' },
        { data: [1], next_page: 'a' },
      ],
      'next_page repeats',
    ],
    ['whose data is not an array', [{ data: {} }], 'data must be a list'],
    ['with an invalid next_page', [{ data: [1], next_page: {} }], 'next_page must be a text or a number'],
    [
      'whose last_id repeats',
      [
        { data: [1], has_more: true, last_id: 'a' },
        { data: [1], has_more: true, last_id: 'a' },
      ],
      'last_id repeats',
    ],
    [
      'that are all empty',
      Array.from({ length: 30 }, (_, page) => ({ data: [], next_page: `p${page}` })),
      'pages in a row are empty',
    ],
  ])('api --paginate exits with 8 for pages %s', async (_, pages, problem) => {
    const ended = await api(['agents', '/v1/x', '--paginate'], { exchange: paging(...pages) })
    expect(ended.code).toBe(8)
    expect(ended.err).toContain(problem)
  })
})
