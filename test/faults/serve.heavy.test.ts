import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { execute, type StartedEmulator, startEmulator } from '../harness/process.ts'
import { serve } from '../harness/server.ts'

const token = 'canary-serve-91ac'
const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

/** Emulator without extra flags that several tests share, because each start takes time. */
let shared: StartedEmulator
beforeAll(async () => {
  shared = await serveWith()
})
afterAll(() => void shared.child.kill())

const serveWith = (...argv: string[]) => startEmulator(['--access-token', token, '--api-key', token, ...argv])

const readPeakMiB = ({ pid }: ChildProcess) =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** Writes bytes to the emulator, and returns the response once the connection has ended. */
async function exchangeBytes({ port }: StartedEmulator, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
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

const formatPost = (headers: string[], target = path) =>
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

const getStatus = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])

const expectAnswer = async (served: StartedEmulator, bytes = formatPost([])) =>
  expect(getStatus(await exchangeBytes(served, bytes))).toBe(200)

describe('W: parley serve resists hostile requests', () => {
  test('W01: parley serve listens on loopback only (needs /proc)', async () => {
    const { port } = shared
    const hex = port.toString(16).toUpperCase().padStart(4, '0')
    const listening = ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
      .filter((line) => line.includes(`:${hex} `) && / 0A /.test(line))
    expect(listening.map((line) => line.trim().split(' ')[1])).toEqual([`0100007F:${hex}`])
  })

  test('W01: parley serve --host listens on another address and prints a warning', async () => {
    const served = await serveWith('--host', '0.0.0.0')
    expect(served.log()).toBe('parley: listening on 0.0.0.0: other machines may reach it\n')
    await expectAnswer(served, formatPost(['Host: container:80']))
  })

  test.each([
    ['a request with the Origin header of a web page', formatPost(['Origin: http://evil.test'])],
    ['a cross-site request without an Origin header', formatPost(['Sec-Fetch-Site: cross-site'])],
    [
      'a CORS preflight request',
      `OPTIONS ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.test\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n`,
    ],
    ['a request to another host name (DNS rebinding)', formatPost(['Host: evil.test'])],
    ['a request without a Host header', 'GET / HTTP/1.0\r\n\r\n'],
  ])('W03: parley serve answers 403 to %s', async (_, bytes) => {
    const answer = await exchangeBytes(shared, bytes)
    expect(getStatus(answer)).toBe(403)
    expect(answer).not.toMatch(/access-control/i)
  })

  test.each(['localhost', '[::1]:80'])('W03: parley serve accepts a request to the host %s', async (host) => {
    await expectAnswer(shared, formatPost([`Host: ${host}`]))
  })

  test('W05: parley serve exits with 11 if the port is in use', async () => {
    const other = await serve(() => {})
    onTestFinished(() => other.close())
    const { code, err } = await execute(['serve', '--port', `${other.port}`])
    const message = `cannot listen on 127.0.0.1:${other.port}: address already in use`
    expect([code, err]).toEqual([11, `parley: ${message}\n`])
  })

  test('W06: parley serve answers 413 to a body of a gigabyte, with and without Content-Length (needs /proc)', async () => {
    const served = await serveWith()
    const head = formatPost([])
      .replace(/content-length: \d+\r\n/i, '')
      .split('\r\n\r\n')[0]
    const declared = await exchangeBytes(served, `${head}\r\nContent-Length: ${2 ** 30}\r\n\r\n{`)
    expect(getStatus(declared)).toBe(413)

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
    expect(getStatus(String(await answer))).toBe(413)
    await expectAnswer(served)
    expect(readPeakMiB(served.child)).toBeLessThan(300)
  })

  test.each([
    [400, 'a request that is not HTTP', 'NONSENSE\r\n\r\n'],
    [431, '10,000 headers', `GET / HTTP/1.1\r\nHost: localhost\r\n${'x: y\r\n'.repeat(10_000)}\r\n`],
    [400, 'both Content-Length and chunked encoding', formatPost(['Transfer-Encoding: chunked'])],
    [404, 'a path with encoded .. segments', formatPost([], '/..%2f..%2fetc/passwd')],
  ])('W06, W07: parley serve answers %i to %s', async (expected, _, bytes) => {
    const served = shared
    expect(getStatus(await exchangeBytes(served, bytes))).toBe(expected)
    await expectAnswer(served)
  })

  test('W08: parley serve logs no secrets of requests', async () => {
    const served = await serveWith()
    await exchangeBytes(served, formatPost([], `/x?key=${token}&a=b`))
    await exchangeBytes(served, formatPost([], `/${token}`))
    expect(served.log()).toContain('a=b')
    expect(served.log()).not.toContain(token)
  })

  test('V15: parley serve escapes and shortens a hostile path in its log', async () => {
    const served = await serveWith()
    await exchangeBytes(served, Buffer.from(formatPost([], '/\u009b2J\u0085::x'), 'latin1'))
    await exchangeBytes(served, formatPost([], `/${'long'.repeat(1000)}`))
    expect(served.log()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
    for (const line of served.log().split('\n')) {
      expect(line).toMatch(/^$|^\d{4}-\d\d-\d\dT/)
      expect(line.length).toBeLessThan(400)
    }
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'W09: parley serve ends by %s although connections are open',
    async (signal) => {
      const served = await serveWith()
      const open = [
        `GET /v1/sessions/sesn_1/events/stream HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${token}\r\n\r\n`,
        formatPost([], `${path}?alt=sse`),
        formatPost([]).replace('Connection: close', 'Connection: keep-alive'),
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
