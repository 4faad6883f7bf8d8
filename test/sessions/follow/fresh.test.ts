import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Deadline } from '../../../src/deadline.ts'
import type { CliError } from '../../../src/errors.ts'
import type { ServiceCaller } from '../../../src/http/call.ts'
import { Follower } from '../../../src/sessions/following/follower.ts'
import { createClock } from '../../harness/clock.ts'
import { bash, type Event, endTurn, interrupt, userSays, waitsFor } from '../../harness/events.ts'
import { createSessionService, type SessionScript, shown } from '../../harness/session-service.ts'

const ended: Event = { id: 'end', type: 'session.status_terminated' }

const begun = [userSays('go', { id: 'm' }), bash('t1'), bash('t2'), { ...waitsFor('t1', 't2'), id: 'w1' }]

/** Creates a session, and a function that opens a follower of it. */
function createSession(history: Event[], script: SessionScript = {}) {
  const service = createSessionService({ timers: createClock(), history, latencyMs: 0, ...script })
  const get = async (path: string) => ({
    ...(await service.exchange({ method: 'GET', url: `https://a.test/v1/sessions/s1${path}`, headers: {} })),
    attempts: 1,
    accept() {},
    fail: (error: unknown) => error as CliError,
  })
  const caller = {
    call: async (_, __, read) => read(await get('/events')),
    open: () => get('/events/stream'),
  } as Pick<ServiceCaller, 'call' | 'open'> as ServiceCaller
  const host = { timers: service.timers, stderr: { isTerminal: true } }
  const context = { messages: { note() {} }, host } as unknown as Context
  const deadline = new Deadline(service.timers)
  const parts = { params: { session: 's1' }, headers: {}, inspectCommand: '', deadline }
  return Object.assign(service, {
    async open() {
      const follower = new Follower({ context, caller, parts })
      await follower.open()
      return follower
    },
    countLists: () => service.requests.filter(({ kind }) => kind === 'list').length,
  })
}

/** Opens a follower and reads its events until two tool uses wait. */
async function openWaiting() {
  const session = createSession(begun)
  const follower = await session.open()
  const news = follower.readNewEvents()
  while (follower.state.stop?.kind !== 'waiting') await news.next()
  await news.next()
  return { session, follower, news }
}

test('a refresh of the session state includes a streamed interrupt before the follower emits it', async () => {
  const { session, follower } = await openWaiting()
  session.add(interrupt, endTurn)
  await follower.refresh()
  expect(follower.state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
})

test.each([
  ['no list if the last list is at most a second old', 0, 0, 0],
  ['the list again if the last list is older', 1001, 0, 1],
  ['the list again although the wall clock is set back', 1001, 3_600_000, 1],
])('a refresh of the session state reads %s', async (_, waitMs, setBackMs, expected) => {
  const { session, follower } = await openWaiting()
  await session.timers.wait(waitMs)
  const now = session.timers.now()
  if (setBackMs > 0) session.timers.now = () => now - setBackMs
  const before = session.countLists()
  await follower.refresh()
  expect(session.countLists() - before).toBe(expected)
})

test('a follower reads at most a megabyte ahead from a stream whose events are not consumed', async () => {
  let frames = 0
  const frame = (event: Event) => {
    frames++
    return `data: ${JSON.stringify(event)}\n\n`
  }
  const session = createSession(begun.slice(0, 1), { streams: [{ frame }] })
  const follower = await session.open()
  const text = 'x'.repeat(2 ** 20)
  const ids = Array.from({ length: 40 }, (_, i) => `e${i}`)
  session.add(...ids.map((id) => shown({ id, type: 'agent.thinking', text }, { listed: 'never' })))
  await session.timers.wait(1)
  await session.timers.wait(1)
  expect(frames).toBeGreaterThan(0)
  expect(frames).toBeLessThan(4)
  const delivered: unknown[] = []
  for await (const items of follower.readNewEvents()) {
    delivered.push(...items.map(({ event }) => event.id))
    if (delivered.length === 39) session.add(ended)
  }
  expect(delivered).toEqual([...ids, 'end'])
})
