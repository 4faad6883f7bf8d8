import { expect, test } from 'vitest'
import {
  bash,
  createSessionService,
  type Event,
  endTurn,
  running,
  type ScriptEvents,
  says,
  shown,
  userSays,
} from '../../harness/session-service.ts'

const inThread = { session_thread_id: 'th1' }
const threadStatus = (status: string, more: object = {}, thread: object = inThread): Event => ({
  type: `session.thread_status_${status}`,
  ...thread,
  ...more,
})
const threadWaits = threadStatus('idle', { stop_reason: { type: 'requires_action', event_ids: ['t1'] } })
const childWaits: ScriptEvents = [running, threadStatus('running'), bash('t1', inThread), threadWaits]

/** Runs a command that sends a task to a session with these next events. Measures the time of the service. */
async function follow(next: ScriptEvents, argv: string[]) {
  const service = createSessionService({
    posts: [{ next }],
    history: [userSays('x'), says('before'), endTurn],
  })
  const start = service.timers.now()
  const { code, err } = await service.run(argv)
  return { code, err, seconds: Math.floor((service.timers.now() - start) / 1000), posts: service.posts }
}
const withDeadline = ['--deadline', '1h']
const runTask = ['events', 'run', 'do it', ...withDeadline]
const send = ['events', 'send', 'do it', '--follow', ...withDeadline]

test.each([
  ['run', runTask],
  ['send --follow', send],
])(
  'events %s exits with 12 if a child thread waits for a reply and nothing happens for 30 s',
  async (_, argv) => {
    const { code, err, seconds, posts } = await follow(childWaits, argv)
    expect({ code, posts: posts.length }, err).toEqual({ code: 12, posts: 1 })
    expect(seconds).toBeLessThan(60)
    expect(err).toContain('t1')
  },
)

test('events run exits with 12 and names the open tool use of a child thread if the idle event lists no ids', async () => {
  const idle = threadStatus('idle', { stop_reason: { type: 'requires_action' } })
  const { code, err, posts } = await follow([running, bash('t1', inThread), idle], runTask)
  expect({ code, posts: posts.length }, err).toEqual({ code: 12, posts: 1 })
  expect(err).toContain('t1')
})

const other = { session_thread_id: 'th2' }
const minutes = (event: Event, count: number) => shown(event, { after: count * 60_000 })
test.each<[string, ScriptEvents, ScriptEvents]>([
  [
    'a tool of the main thread runs',
    [bash('t2', { evaluated_permission: 'allow' })],
    [minutes({ type: 'agent.tool_result', tool_use_id: 't2' }, 10)],
  ],
  [
    'a model request of the main thread is open',
    [{ type: 'span.model_request_start', id: 'q1' }],
    [minutes({ type: 'span.model_request_end', model_request_start_id: 'q1' }, 10)],
  ],
  [
    'another thread works',
    [threadStatus('running', {}, other)],
    [minutes(threadStatus('idle', {}, other), 10)],
  ],
])('events run does not exit, although a child thread waits for a reply, while %s', async (_, work, end) => {
  const { code, err, seconds } = await follow([...childWaits, ...work, ...end], runTask)
  expect({ code }, err).toEqual({ code: 12 })
  expect(seconds).toBeGreaterThan(600)
  expect(seconds).toBeLessThan(660)
})

test('events run does not exit if the child thread that waits for a reply continues within 30 s', async () => {
  const next = [
    shown(threadStatus('running'), { after: 25_000 }),
    shown(says('done'), { after: 25_000 }),
    endTurn,
  ]
  const { code, err } = await follow([...childWaits, ...next], runTask)
  expect({ code }, err).toEqual({ code: 0 })
})
