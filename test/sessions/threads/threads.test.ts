import { describe, expect, test } from 'vitest'
import {
  bash,
  createSessionService,
  custom,
  type Event,
  endTurn,
  interrupt,
  running,
  type ScriptEvents,
  type SessionScript,
  says,
  shown,
  userSays,
  waitsFor,
} from '../../harness/session-service.ts'

const inThread = { session_thread_id: 'th1' }
const threadStatus = (status: string, more: object = {}): Event => ({
  type: `session.thread_status_${status}`,
  ...inThread,
  agent_name: 'helper',
  ...more,
})
const threadWaits = (...ids: string[]) =>
  threadStatus('idle', { stop_reason: { type: 'requires_action', event_ids: ids } })
const terminated = threadStatus('terminated')
const allow = (id: string): Event => ({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' })

/** Events after which a child thread waits for a reply to t1 while the session runs. */
const childWaits: ScriptEvents = [
  running,
  { type: 'session.thread_created', ...inThread, agent_name: 'helper', workflow_run_id: null },
  threadStatus('running'),
  bash('t1', inThread),
  threadWaits('t1'),
]
const done: ScriptEvents = [
  threadStatus('running'),
  threadStatus('idle', { stop_reason: { type: 'end_turn' } }),
  says('done'),
  endTurn,
]

function open(script: SessionScript) {
  const service = createSessionService(script)
  service.write('allow.json', { rules: [], default: { decision: 'allow' } })
  const report = () => service.lines('report.json')[0]
  const listAuditEvents = (id: string) =>
    service.lines('audit.ndjson').flatMap(({ toolUse, event }) => (toolUse === id ? [event] : []))
  return {
    ...service,
    report,
    listAuditEvents,
    posts: () => service.posts,
    replies: () => service.posts.slice(1),
  }
}
const task = (next: ScriptEvents) => ({ type: 'user.message', next })
const runArguments = ['events', 'run', 'do it', '--last', '--policy', 'allow.json', '--audit', 'audit.ndjson']

describe('tool use of a child thread that waits while the session runs', () => {
  test('events run replies to a waiting child thread while the main thread works', async () => {
    const service = open({ posts: [task(childWaits), { type: 'user.tool_confirmation', next: done }] })
    const { code, out, err } = await service.run([...runArguments, '--deadline', '1h'])
    expect({ code, out, replies: service.replies() }, err).toEqual({
      code: 0,
      out: 'done\n',
      replies: [[allow('t1')]],
    })
  })

  test.each<[string, { isAccepted: boolean; next?: ScriptEvents }, number]>([
    ['was accepted although the response is a 500', { isAccepted: true, next: done }, 0],
    ['may have been lost, because the response is a 500', { isAccepted: false, next: [] }, 10],
  ])('events run does not repeat a reply to a child thread that %s', async (_, outcome, expected) => {
    const fails = { type: 'user.tool_confirmation', fault: { status: 500 }, ...outcome } as const
    const service = open({ posts: [task([...childWaits, shown(endTurn, { after: 20_000 })]), fails] })
    const { code, err } = await service.run([...runArguments, '--deadline', '1h'])
    expect({ code, replies: service.replies() }, err).toEqual({ code: expected, replies: [[allow('t1')]] })
  })

  test('events run sends the result of an allowed tool use if the child thread waits for it again', async () => {
    const service = open({
      posts: [
        task(childWaits),
        { type: 'user.tool_confirmation', next: [threadStatus('running'), threadWaits('t1')] },
        { type: 'user.tool_result', next: done },
      ],
    })
    const { code, out, err } = await service.run([...runArguments, '--tool', 'bash=echo out'])
    expect({ code, out, replies: service.replies() }, err).toMatchObject({
      code: 0,
      out: 'done\n',
      replies: [[allow('t1')], [{ tool_use_id: 't1', content: [{ text: 'out\n' }] }]],
    })
  })

  test('events confirm --pending replies to a waiting child thread', async () => {
    const service = open({ history: [userSays('x'), ...childWaits] })
    const { code, err } = await service.run(['events', 'confirm', '--pending', '--allow'])
    expect({ code, posts: service.posts() }, err).toEqual({ code: 0, posts: [[allow('t1')]] })
  })

  test('events follow prints that a child thread waits for a reply, and continues until the session is idle', async () => {
    const service = open({ history: [userSays('x'), ...childWaits] })
    void service.timers.wait(20_000).then(() => service.add(allow('t1'), ...(done as Event[])))
    const { code, out, err } = await service.run(['events', 'follow'])
    expect({ code }, err).toEqual({ code: 0 })
    expect(out).toContain('done\n')
    expect(err).toContain('t1')
    expect(err).toContain('events confirm')
  })

  test('events follow exits with 12 if the session is idle while a child thread waits for a reply', async () => {
    const service = open({ history: [userSays('x'), ...childWaits] })
    void service.timers.wait(60_000).then(() => service.add(says('one more'), endTurn))
    const { code, out, err } = await service.run(['events', 'follow', '--ids'])
    expect({ code, out }, err).toEqual({ code: 12, out: 't1\n' })
  })

  test.each<[string, ScriptEvents]>([
    ['the thread continued without a reply', [threadStatus('running')]],
    ['an interrupt of the thread', [{ ...interrupt, ...inThread }]],
    ['an interrupt of all threads', [interrupt]],
    ['the end of the thread', [terminated]],
    ['a reply of another client', [allow('t1')]],
  ])('events run and events confirm send no reply to a child thread after %s', async (_, next) => {
    const service = open({ posts: [task([...childWaits, ...next, says('done'), endTurn])] })
    await service.run(runArguments)
    expect(service.replies()).toEqual([])
    const pending = await service.run(['events', 'confirm', '--pending', '--allow'])
    expect(pending).toMatchObject({ code: 2, err: expect.stringContaining('no tool use waits') })
  })
})

describe('end of a thread', () => {
  test('events run starts no command for a thread that has ended', async () => {
    const service = open({
      posts: [task([running, custom('t1', inThread), threadWaits('t1'), terminated, says('done'), endTurn])],
    })
    const { code, out, err } = await service.run([...runArguments, '--tool', 'count=echo ran > ran'])
    expect({ code, out, replies: service.replies() }, err).toEqual({ code: 0, out: 'done\n', replies: [] })
    expect(() => service.lines('ran')).toThrow('ENOENT')
  })
})

test('events run posts each tool result in its own request, and all confirmations in one request', async () => {
  const service = open({
    posts: [
      task([running, custom('t1'), custom('t2'), bash('t3'), bash('t4'), waitsFor('t1', 't2', 't3', 't4')]),
      {
        when: () => service.replies().flat().length === 4,
        next: [running, says('done'), endTurn],
      },
    ],
  })
  const rules = [{ tool: 'count', decision: 'deny', reason: 'no' }]
  service.write('allow.json', { rules, default: { decision: 'allow' } })
  const { err } = await service.run(runArguments)
  const types = service.replies().map((events) => events.map(({ type }) => type))
  expect(
    types.toSorted((a, b) => a.length - b.length),
    err,
  ).toEqual([
    ['user.custom_tool_result'],
    ['user.custom_tool_result'],
    ['user.tool_confirmation', 'user.tool_confirmation'],
  ])
})

describe('warnings about refused tool uses and failed servers', () => {
  const refused = bash('t1', {
    evaluated_permission: 'deny',
    evaluation: { type: 'auto', evaluated_permission: { type: 'deny', reason_code: 'high_risk' } },
  })
  const fails = (server: string, status: string): Event => ({
    type: 'session.error',
    error: {
      type: 'mcp_connection_failed_error',
      mcp_server_name: server,
      message: 'cannot be reached',
      retry_status: { type: status },
    },
  })
  const argv = [...runArguments, '-q', '--report', 'report.json']

  test('events run warns with -q about a tool use that the service refused, and counts it in the report', async () => {
    const service = open({ posts: [task([running, refused, says('done'), endTurn])] })
    const { code, err } = await service.run(argv)
    expect({ code, replies: service.replies() }, err).toEqual({ code: 0, replies: [] })
    expect(err).toMatch(/warning.*refused.*bash.*t1|refused.*t1/)
    expect(err).toContain('high_risk')
    expect(service.report()).toMatchObject({ warnings: { refusedToolUses: 1 } })
  })

  test('events run warns once about an MCP server that failed for good, and not about a server that is retried', async () => {
    const service = open({
      posts: [
        task([
          running,
          fails('jira', 'retrying'),
          fails('github', 'retrying'),
          fails('github', 'exhausted'),
          fails('github', 'exhausted'),
          says('done'),
          endTurn,
        ]),
      ],
    })
    const { code, err } = await service.run(argv)
    expect({ code }, err).toEqual({ code: 0 })
    expect(err.match(/github/g)).toHaveLength(1)
    expect(err).not.toContain('jira')
    expect(err).toContain('cannot be reached')
    expect(service.report()).toMatchObject({ warnings: { failedServers: 1 } })
  })

  test('events run warns about an error of the session if the service does not retry', async () => {
    const fails = (status: string): Event => ({
      type: 'session.error',
      error: { type: 'model_overloaded_error', message: 'gave up', retry_status: { type: status } },
    })
    const isWarned = async (...steps: ScriptEvents) => {
      const service = open({ posts: [task([running, ...steps, endTurn])] })
      const { code, err } = await service.run([...argv, '--last'])
      expect({ code }, err).toEqual({ code: 0 })
      const { warnings } = service.report() as { warnings: { sessionErrors: number } }
      expect(warnings.sessionErrors).toBe(
        err.includes('an error that the service does not retry: gave up') ? 1 : 0,
      )
      return warnings.sessionErrors === 1
    }
    expect(await isWarned(says('partial'), fails('exhausted'))).toBe(true)
    expect(await isWarned(says('partial'), fails('retrying'))).toBe(false)
    expect(await isWarned(fails('exhausted'), says('done'))).toBe(true)
  })

  test('--errors json prints each warning on its own line', async () => {
    const service = open({
      posts: [task([running, refused, fails('github', 'terminal'), says('done'), endTurn])],
    })
    const { err } = await service.run([...argv, '--errors', 'json'])
    const lines = err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).warning)
    expect(lines).toEqual([expect.stringContaining('t1'), expect.stringContaining('github')])
  })
})

test('events run marks a redacted part of a message, and warns about the part with --last', async () => {
  const answer = {
    type: 'agent.message',
    content: [{ type: 'redacted' }, { type: 'text', text: 'the rest' }],
  }
  const service = open({ posts: [task([running, answer, endTurn])] })
  const shownAll = await service.run(['events', 'run', 'do it'])
  expect(shownAll.out).toContain('[redacted]the rest\n')
  const last = await service.run([...runArguments, '-q'])
  expect(last).toMatchObject({ code: 0, out: 'the rest\n', err: expect.stringContaining('redacted') })
})
