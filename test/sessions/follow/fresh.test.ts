import { describe, expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Deadline } from '../../../src/deadline.ts'
import type { CliError } from '../../../src/errors.ts'
import type { Caller } from '../../../src/http/call.ts'
import { openFollower } from '../../../src/sessions/following/follower.ts'
import type { Exchange, HttpResponse } from '../../../src/wire/exchange.ts'
import { createClock } from '../../harness/clock.ts'

type Event = Record<string, unknown> & { type: string }

const use = (id: string, command = 'ls'): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command },
})
const waits = (id: string, ...ids: string[]): Event => ({
  id,
  type: 'session.status_idle',
  stop_reason: { type: 'requires_action', event_ids: ids },
})
const begun: Event[] = [
  { id: 'm', type: 'user.message', content: 'go' },
  use('t1'),
  use('t2'),
  waits('w1', 't1', 't2'),
]

/** Creates a session whose list and stream a test fills. `reads` counts the requests. */
function createSession(listed: Event[]) {
  const clock = createClock()
  const reads = { lists: 0, chunks: 0 }
  const list = { events: listed, fails: false }
  const coming: Event[] = []
  let wake = () => {}
  async function* stream(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const event = coming.shift()
      if (event) {
        reads.chunks++
        yield Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
      } else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }
  const answer = (type: string, body: AsyncIterable<Uint8Array>): HttpResponse => ({
    status: 200,
    statusText: '',
    headers: { 'content-type': type },
    body,
    close() {},
  })
  async function* page() {
    yield Buffer.from(JSON.stringify({ data: list.events }))
  }
  const exchange: Exchange = async ({ url }) => {
    if (url.endsWith('/stream')) return answer('text/event-stream', stream())
    reads.lists++
    if (list.fails) throw new Error('the list is unavailable')
    return answer('application/json', page())
  }
  const get = async (path: string) => ({
    ...(await exchange({ method: 'GET', url: `https://agents.test${path}`, headers: {} })),
    attempts: 1,
    accept() {},
    fail: (error: unknown) => error as CliError,
  })
  const caller = {
    call: async (_, __, read) => read(await get('/events')),
    open: () => get('/stream'),
  } as Pick<Caller, 'call' | 'open'> as Caller
  const host = { timers: clock, stderr: { isTerminal: true } }
  const context = { messages: { note() {} }, host } as unknown as Context
  return {
    clock,
    reads,
    list,
    open: () =>
      openFollower({
        context,
        caller,
        parts: {
          params: { session: 'sesn_1' },
          headers: {},
          inspectCommand: '',
          deadline: new Deadline(clock),
        },
      }),
    deliver(...events: Event[]) {
      coming.push(...events)
      wake()
    },
  }
}

/** Opens a follower and reads its events until two tool uses wait. */
async function openWaiting() {
  const session = createSession(begun)
  const follower = await session.open()
  const news = follower.readNewEvents()
  while (follower.state.stop?.kind !== 'waiting') await news.next()
  await news.next()
  return { ...session, follower, news }
}

describe("refresh of a followed session's state", () => {
  test('a refresh counts a streamed interrupt before the interrupt is returned as an event', async () => {
    const { deliver, follower } = await openWaiting()
    deliver({ id: 'i', type: 'user.interrupt' }, { id: 'd', type: 'session.status_idle', stop_reason: null })
    await follower.refresh()
    expect(follower.state.stop).toEqual({ kind: 'done', reason: 'no reason given' })
  })

  test('a refresh reads no list if the last list is at most a second old', async () => {
    const { reads, follower } = await openWaiting()
    const before = reads.lists
    await follower.refresh()
    expect(reads.lists).toBe(before)
  })

  test('a refresh counts a newer list: tool uses, replies, other inputs and ends', async () => {
    const { clock, list, follower, news } = await openWaiting()
    await clock.wait(1001)
    list.events = [
      ...begun,
      use('t1', 'rm -rf /'),
      { id: 'r', type: 'user.tool_result', tool_use_id: 't2', content: 'x' },
      use('t3'),
      waits('w2', 't1', 't3'),
    ]
    await follower.refresh()
    expect(follower.state.pending).toEqual(['t1', 't3'])
    expect(follower.state.getToolUse('t1')?.isContradicted).toBe(true)
    expect(follower.state.getToolUse('t3')?.name).toBe('bash')
    const { value } = await news.next()
    expect(value?.map(({ event }: { event: Event }) => event.id)).toEqual(['r', 't3', 'w2'])
    await clock.wait(1001)
    list.events.push({ id: 'end', type: 'session.status_terminated' })
    await follower.refresh()
    expect(follower.state.stop?.kind).toBe('ended')
  })

  test('a refresh reads the list again although the wall clock is set back', async () => {
    const { clock, reads, follower } = await openWaiting()
    await clock.wait(1001)
    const now = clock.now()
    clock.now = () => now - 3_600_000
    const before = reads.lists
    await follower.refresh()
    expect(reads.lists).toBe(before + 1)
  })
})

test('a follower reads at most a megabyte ahead from a stream whose events are not consumed', async () => {
  const { deliver, clock, reads, open } = createSession(begun.slice(0, 1))
  const follower = await open()
  const text = 'x'.repeat(2 ** 20)
  deliver(...Array.from({ length: 40 }, (_, i) => ({ id: `e${i}`, type: 'agent.thinking', text })))
  await clock.wait(1)
  await clock.wait(1)
  const waiting = reads.chunks
  expect(waiting).toBeGreaterThan(0)
  expect(waiting).toBeLessThan(4)
  const delivered: unknown[] = []
  for await (const items of follower.readNewEvents()) {
    delivered.push(...items.map(({ event }) => event.id))
    if (delivered.length === 39) deliver({ id: 'd', type: 'session.status_terminated' })
  }
  expect(delivered).toEqual([...Array.from({ length: 40 }, (_, i) => `e${i}`), 'd'])
})
