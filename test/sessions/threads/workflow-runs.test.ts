import { expect, test } from 'vitest'
import {
  createSessionService,
  type Event,
  endTurn,
  interrupt,
  type PostRule,
  running,
  type ScriptEvents,
  type SessionScript,
  says,
  shown,
  userSays,
} from '../../harness/session-service.ts'

const created = (id: string, more: object = {}): Event => ({
  type: 'workflow_run.created',
  workflow_run_id: id,
  name: `review-${id}`,
  phases: [],
  ...more,
})
const ended = (id: string, type = 'completed', more: object = {}): Event => ({
  type: 'workflow_run.status_ended',
  workflow_run_id: id,
  result: { type, ...more },
})

/** Delays an event by two minutes. */
const later = (event: Event) => shown(event, { after: 120_000 })

const starts: ScriptEvents = [running, created('w1'), says('I started a run'), endTurn]

const open = (next: ScriptEvents, more: SessionScript = {}) =>
  createSessionService({ posts: [{ type: 'user.message', next }], ...more })
const runArguments = ['events', 'run', 'do it', '--last', '--report', 'report.json']
test('events run waits for the end of a workflow run and prints the answer after it', async () => {
  const service = open([...starts, later(ended('w1')), running, says('all is well'), endTurn])
  const { code, out, err } = await service.run(runArguments)
  expect({ code, out }).toEqual({ code: 0, out: 'all is well\n' })
  expect(err).toContain('review-w1 (w1)')
  expect(service.report()).toMatchObject({ warnings: { failedWorkflowRuns: 0, openWorkflowRuns: 0 } })
})

test.each(['send do-it --follow', 'run do-it'])(
  'events %s waits for the last workflow run',
  async (words) => {
    const second = [created('w2'), endTurn, later(ended('w2')), says('two'), endTurn]
    const service = open([running, created('w1'), says('one'), endTurn, later(ended('w1')), ...second])
    const { code, out, err } = await service.run(['events', ...words.split(' ')])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^two$/m) })
    expect(err.match(/^parley: waiting for the workflow run review-w1 \(w1\)/gm)).toHaveLength(1)
    expect(err.match(/^parley: waiting for the workflow run review-w2 \(w2\)/gm)).toHaveLength(1)
  },
)

test("events run --last exits with 8 if another client's message comes before the end of the workflow run", async () => {
  const theirs = [userSays('other'), running, says('theirs')]
  const next = [...starts, ...theirs, ended('w1'), running, says('all'), endTurn]
  const { code, out, err } = await open(next).run([...runArguments, '--deadline', '1h'])
  expect({ code, out, err }).toEqual({ code: 8, out: '', err: expect.stringContaining('another client') })
})

test("events run --last prints the answer if the workflow run ended before another client's message", async () => {
  const next = [...starts, ended('w1'), running, says('mine'), endTurn, userSays('other'), running, endTurn]
  expect(await open(next).run(runArguments)).toMatchObject({ code: 0, out: 'mine\n' })
})

const next = [...starts, later(ended('w1'))]
test.each<[string, SessionScript]>([
  ['GET /v1/sessions/ID shows that the session is idle', {}],
  ['the service does not have GET /v1/sessions/ID', { session: () => ({ status: 404 }) }],
])('events run exits with 0 and warns if no event follows the last workflow run and %s', async (_, more) => {
  const { code, out, err } = await open(next, more).run(['events', 'run', 'do it', '--deadline', '1h'])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('I started a run') })
  expect(err).toContain('did not continue after its last workflow run')
})

test('events run --last exits with 8 if no event follows the last workflow run', async () => {
  const { code, out, err } = await open(next).run([...runArguments, '--deadline', '1h'])
  expect({ code, out }).toEqual({ code: 8, out: '' })
  const text = 'parley: the answer may be missing: the session did not continue after its last workflow run'
  expect(err.split(text)).toHaveLength(2)
  expect(err).not.toContain('could not be followed')
})

const follow = async (options = {}) => {
  const service = open([...starts, later(ended('w1'))], { session: () => ({ id: 's1', status: 'running' }) })
  const { code, err } = await service.run([...runArguments, '--deadline', '5m'], options)
  expect(code, err).toBe(15)
  return err.split('\n').filter((line) => line.startsWith('parley: '))
}
const quiet = 'parley: s1 has sent no event for 30 s, and its status is running: waiting for it to continue'

test('parley prints one note about the awaited workflow run, and each progress line names the last event', async () => {
  const after = 'the last event was workflow_run.status_ended'
  expect(await follow()).toEqual([
    'parley: waiting for the workflow run review-w1 (w1) to end',
    'parley: still at work after 1 min: the last event was session.status_idle, 60 s ago',
    'parley: still at work after 2 min: the last event was session.status_idle, 2 min ago',
    quiet,
    `parley: still at work after 3 min: ${after}, 60 s ago`,
    `parley: still at work after 4 min: ${after}, 2 min ago`,
    `parley: still at work after 5 min: ${after}, 3 min ago`,
    'parley: the deadline passed while parley followed the session',
  ])
})

test('events run warns about a failed workflow run even with -q, and counts it in the report', async () => {
  const error = { type: 'program_error', message: 'its plan failed' }
  const service = open([...starts, ended('w1', 'error', { error }), says('done'), endTurn])
  const { code, out, err } = await service.run([...runArguments, '-q'])
  expect({ code, out }).toEqual({ code: 0, out: 'done\n' })
  expect(err).toContain('review-w1 (w1)')
  expect(err).toContain('its plan failed')
  expect(service.report()).toMatchObject({ warnings: { failedWorkflowRuns: 1 } })
})

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const hidden = { listed: 'never', streamed: 'never' } as const
test.each<[string, ScriptEvents, PostRule]>([
  ['a working session', [running, created('w1'), spent], { next: [endTurn] }],
  ['an idle session, although the list hides the interrupt', [...starts, later(spent)], { posted: hidden }],
])('events run at a limit interrupts %s, and warns about open runs', async (_, next, rule) => {
  const posts = [
    { type: 'user.message', next },
    { type: 'user.interrupt', ...rule },
  ]
  const service = createSessionService({ posts })
  const { code, err } = await service.run([...runArguments, '-q', '--max-total-tokens', '10'])
  expect({ code, replies: service.replies() }).toEqual({ code: 15, replies: [[interrupt]] })
  for (const words of ['review-w1 (w1)', 'may continue to spend', 'budget']) expect(err).toContain(words)
  expect(err).not.toContain('is not idle yet')
  expect(service.report()).toMatchObject({ exit: 15, warnings: { openWorkflowRuns: 1 } })
})
