import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/run.ts'
import { serve as occupy } from '../harness/server.ts'

const parley = join(import.meta.dirname, '../../bin/parley.cjs')
const token = 'canary-serve-91ac'
const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

interface Served {
  child: ChildProcess
  port: number
  log(): string
  /** Peak memory so far. */
  peakMiB(): number
}

let shared: Promise<Served> | undefined
const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Returns a server that tests share, without flags. */
const getSharedServer = (): Promise<Served> => {
  shared ??= serve()
  return shared
}

/** Starts the built `parley serve`, optionally under another command such as strace. */
async function serve(argv: string[] = [], under: string[] = []): Promise<Served> {
  const command = [...under, process.execPath, parley, 'serve', '--access-token', token, '--api-key', token]
  const env = { ...childEnvironment, HOME: temporaryFolder() }
  const child = spawn(command[0] as string, [...command.slice(1), ...argv], { env })
  children.push(child)
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const { baseUrl } = JSON.parse(line)
  return {
    child,
    port: Number(new URL(baseUrl).port),
    log: () => log,
    peakMiB: () =>
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
  }
}

/** Writes bytes to a server, and returns the response after the connection has ended. */
async function raw({ port }: Served, bytes: string | Buffer, host = '127.0.0.1'): Promise<string> {
  const socket = connect(port, host)
  onTestFinished(() => void socket.destroy())
  let answer = ''
  socket
    .on('error', () => {})
    .on('data', (chunk) => {
      answer += chunk
    })
  socket.write(bytes)
  await once(socket, 'close')
  return answer
}

const post = (headers: string[], target = path) =>
  [
    `POST ${target} HTTP/1.1`,
    ...(headers.some((header) => /^host:/i.test(header)) ? [] : ['Host: 127.0.0.1']),
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Connection: close',
    `Content-Length: ${body.length}`,
    ...headers,
    '',
    body,
  ].join('\r\n')

const status = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])

/** Checks that the server still answers. */
async function expectAnswer(served: Served): Promise<void> {
  expect(status(await raw(served, post([])))).toBe(200)
}

describe('W: serve under attack', () => {
  test('W01: serve listens on loopback only (needs /proc)', async () => {
    const { port } = await getSharedServer()
    const hex = port.toString(16).toUpperCase().padStart(4, '0')
    const listening = ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
      .filter((line) => line.includes(`:${hex} `) && / 0A /.test(line))
    expect(listening.map((line) => line.trim().split(' ')[1])).toEqual([`0100007F:${hex}`])
  })

  test('W01: serve listens on another address with --host, and prints a warning', async () => {
    const served = await serve(['--host', '0.0.0.0'])
    expect(served.log()).toBe('parley: listening on 0.0.0.0: other machines may reach it\n')
    expect(status(await raw(served, post(['Host: container:80'])))).toBe(200)
  })

  test.each([
    ['a foreign Origin', post(['Origin: http://evil.test'])],
    ['a cross-site request without Origin', post(['Sec-Fetch-Site: cross-site'])],
    [
      'a preflight',
      `OPTIONS ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.test\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n`,
    ],
    ['a rebound host name', post(['Host: evil.test'])],
    ['a request without Host', 'GET / HTTP/1.0\r\n\r\n'],
  ])('W03: serve answers 403 to %s', async (_, bytes) => {
    const answer = await raw(await getSharedServer(), bytes)
    expect(status(answer)).toBe(403)
    expect(answer).not.toMatch(/access-control/i)
  })

  test.each(['localhost', '[::1]:80'])('W03: serve accepts the Host %s', async (host) => {
    expect(status(await raw(await getSharedServer(), post([`Host: ${host}`])))).toBe(200)
  })

  test('W05: serve exits with 11 if the port is in use', async () => {
    const other = await occupy(() => {})
    onTestFinished(() => other.close())
    const { status: code, stderr } = await new Promise<{ status: number | null; stderr: string }>(
      (resolve) => {
        const child = spawn(process.execPath, [parley, 'serve', '--port', `${other.port}`], {
          env: { ...childEnvironment, HOME: temporaryFolder() },
        })
        let received = ''
        child.stderr.on('data', (chunk) => {
          received += chunk
        })
        child.on('close', (exit) => resolve({ status: exit, stderr: received }))
      },
    )
    expect([code, stderr]).toEqual([
      11,
      `parley: cannot listen on 127.0.0.1:${other.port}: address already in use\n`,
    ])
  })

  test('W06: serve answers 413 to a body of a gigabyte, with and without Content-Length (needs /proc)', async () => {
    const served = await serve()
    const head = post([])
      .replace(/content-length: \d+\r\n/i, '')
      .split('\r\n\r\n')[0]
    expect(status(await raw(served, `${head}\r\nContent-Length: ${2 ** 30}\r\n\r\n{`))).toBe(413)

    const socket = connect(served.port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    const answer = new Promise((resolve) => socket.once('data', resolve))
    socket.write(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(2 ** 20, 32), Buffer.from('\r\n')])
    let resume = () => {}
    socket.on('drain', () => resume()).on('close', () => resume())
    for (let sent = 0; sent < 1024 && !socket.destroyed; sent++) {
      if (!socket.write(chunk)) {
        await new Promise<void>((resolve) => {
          resume = resolve
        })
      }
    }
    expect(status(String(await answer))).toBe(413)
    await expectAnswer(served)
    expect(served.peakMiB()).toBeLessThan(300)
  })

  test.each([
    [400, 'invalid HTTP', 'NONSENSE\r\n\r\n'],
    [431, '10,000 headers', `GET / HTTP/1.1\r\nHost: localhost\r\n${'x: y\r\n'.repeat(10_000)}\r\n`],
    [400, 'Content-Length with chunks', post(['Transfer-Encoding: chunked'])],
    [404, 'an encoded path with ..', post([], '/..%2f..%2fetc/passwd')],
  ])('W06, W07: serve answers %i to %s', async (expected, _, bytes) => {
    const served = await getSharedServer()
    expect(status(await raw(served, bytes))).toBe(expected)
    await expectAnswer(served)
  })

  test('W08: serve logs no secrets of requests', async () => {
    const served = await serve()
    await raw(served, post([], `/x?key=${token}&a=b`))
    await raw(served, post([], `/${token}`))
    expect(served.log()).toContain('a=b')
    expect(served.log()).not.toContain(token)
  })

  test('V15: serve escapes and shortens a hostile path in its log', async () => {
    const served = await serve()
    await raw(
      served,
      Buffer.from(post(['User-Agent: \x1b[2J'.replace('\x1b', '')], '/\u009b2J\u0085::x'), 'latin1'),
    )
    await raw(served, post([], `/${'long'.repeat(1000)}`))
    expect(served.log()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
    for (const line of served.log().split('\n')) {
      expect(line).toMatch(/^$|^\d{4}-\d\d-\d\dT/)
      expect(line.length).toBeLessThan(400)
    }
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'W09: serve ends by %s with open streams and idle connections',
    async (signal) => {
      const served = await serve()
      const open = [
        `GET /v1/sessions/sesn_1/events/stream HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${token}\r\n\r\n`,
        post([], `${path}?alt=sse`),
        post([]).replace('Connection: close', 'Connection: keep-alive'),
        'GET / HTTP/1.1\r\n',
      ].map((bytes) => {
        const socket = connect(served.port, '127.0.0.1').on('error', () => {})
        socket.resume().write(bytes)
        return socket
      })
      onTestFinished(() => {
        for (const socket of open) socket.destroy()
      })
      await once(open[1] as Socket, 'data')
      served.child.kill(signal)
      expect(await once(served.child, 'exit')).toEqual([null, signal])
    },
  )
})
