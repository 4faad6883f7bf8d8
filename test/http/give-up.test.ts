import { expect, onTestFinished, test, vi } from 'vitest'
import { ArraySet } from '../../src/array-set.ts'
import { Deadline } from '../../src/deadline.ts'
import { createConnectionPool } from '../../src/http/connections.ts'
import { createHttpExchange } from '../../src/http/exchange.ts'
import { realTimers } from '../../src/timers.ts'
import { createInterrupt, run } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'
import { createSignal } from '../harness/session-service.ts'

const direct = { connectTimeoutMs: 0, extraCertificatesPem: undefined, findProxy: undefined }

const openExchange = (maxSilenceMs: number, cleanups = new ArraySet<() => void>()) =>
  createHttpExchange({ connections: createConnectionPool(direct), maxSilenceMs, cleanups })

test('a deadline that passes closes the connection of a sent request', async () => {
  const cleanups = new ArraySet<() => void>()
  const deadline = new Deadline(realTimers)
  const server = await serve(() => deadline.pass())
  onTestFinished(() => server.close())
  const failed = openExchange(0, cleanups)({ method: 'GET', url: server.url, headers: {}, deadline })
  await expect(failed).rejects.toMatchObject({ kind: 'unknown', details: { deadline: true } })
  expect([...cleanups]).toEqual([])
})

test('a signal closes the connection of the request in progress', async () => {
  const { onSignal, interrupt } = createInterrupt()
  const closed = createSignal()
  const mute = await serve((socket) => {
    socket.on('close', closed.trigger)
    interrupt()
  })
  onTestFinished(() => mute.close())
  // A signal would end a real process. In this test, the run stays open, so the test does not wait for it.
  void run(['chat', 'x'], { exchange: 'network', env: envFor(mute), onSignal })
  await closed.triggered
})

test('--timeout does not end an upload that makes progress, however long it takes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const body = new Uint8Array(64 * 2 ** 20)
  let size = 0
  let passed = 0
  const slow = await serve(() => {}, {
    onConnection: (socket) =>
      socket.on('data', (chunk) => {
        size += chunk.length
        // The clock advances by 1 ms for each 16 KiB that the server reads, so the upload is slow.
        const step = chunk.length / 2 ** 14
        vi.advanceTimersByTime(step)
        passed += step
        if (size > body.length) socket.write(response('{}'))
      }),
  })
  onTestFinished(() => slow.close())
  const answer = await openExchange(1000)({ method: 'POST', url: slow.url, headers: {}, body })
  expect(answer.status).toBe(200)
  expect(passed).toBeGreaterThan(4000)
  answer.close()
})

test('--timeout ends an upload that makes no progress', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const open = createSignal()
  const mute = await serve(() => {}, {
    onConnection: (socket) => void socket.once('data', open.trigger).once('data', () => socket.pause()),
  })
  onTestFinished(() => mute.close())
  const exchange = openExchange(1000)
  const answer = exchange({ method: 'POST', url: mute.url, headers: {}, body: new Uint8Array(64 * 2 ** 20) })
  const message = expect.stringContaining('1 s')
  const failed = expect(answer).rejects.toMatchObject({ kind: 'unknown', message })
  await open.triggered
  let isOver = false
  void failed.then(() => {
    isOver = true
  })
  while (!isOver) {
    vi.advanceTimersByTime(1001)
    await new Promise(setImmediate)
  }
})

test('a closed connection suggests https:// only if the server has not answered before', async () => {
  let count = 0
  const closing = await serve((socket) => void socket.end(++count === 2 ? response('{}') : ''))
  onTestFinished(() => closing.close())
  const exchange = openExchange(0)
  const call = async () => {
    for await (const _ of (await exchange({ method: 'GET', url: closing.url, headers: {} })).body);
  }
  await expect(call()).rejects.toThrow('(should the address begin with https://?)')
  await call()
  await expect(call()).rejects.toThrow(/ the connection was closed without an answer$/)
})
