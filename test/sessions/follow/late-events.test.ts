import { expect, test } from 'vitest'
import type { Event } from '../../harness/events.ts'
import {
  bash,
  confirms,
  endTurn,
  interrupt,
  running,
  says,
  userSays,
  waitsFor,
} from '../../harness/events.ts'
import type { ScriptEvents, SessionScript } from '../../harness/session-service.ts'
import { createSessionService, shown } from '../../harness/session-service.ts'

/** Makes an event that no stream delivers and that lists contain after three seconds. */
const late = (event: Event) => shown(event, { streamed: 'never', listed: 3_000 })

const terminated: Event = { type: 'session.status_terminated' }

/**
 * Creates a session with the events `next` after a task. Streams deliver events at once, lists contain them
 * after three seconds.
 */
function afterTask(next: ScriptEvents, more: SessionScript = {}) {
  return createSessionService({
    history: [userSays('before'), running, says('earlier'), endTurn],
    posts: [{ type: 'user.message', next }],
    defaultVisibility: { listed: 3_000 },
    ...more,
  })
}
const runArguments = ['events', 'run', 'do it', '--last', '--policy', 'allow.json']
const typesOf = (posts: Event[][]) => posts.flat().map(({ type }) => type)

const lateWait = [running, bash('t1'), late(waitsFor('t1'))]
const toolResult = { type: 'agent.tool_result', tool_use_id: 't1' }
const answered = [confirms('t1'), toolResult, says('the answer'), endTurn]
test.each<[string, ScriptEvents, number]>([
  ['does not make events run allow a tool use after an interrupt', [...lateWait, interrupt, endTurn], 15],
  ['does not make events run allow a tool use of a terminated session', [...lateWait, terminated], 13],
  ['does not end events run that waits', [running, late(endTurn), running, bash('t1'), waitsFor('t1')], 12],
  ['does not keep events run waiting if its tool use is answered', [...lateWait, ...answered], 0],
])('an idle event that appears only in lists, 3 s late, %s', async (_, next, expected) => {
  const service = afterTask(next)
  const argv = expected === 12 ? runArguments.slice(0, 4) : runArguments
  const { code, out } = await service.run([...argv, '--deadline', '60'])
  const answer = expected === 0 ? 'the answer\n' : ''
  expect([code, out, typesOf(service.posts)]).toEqual([expected, answer, ['user.message']])
})

test('events run without an answer exits with 0 if the deadline passes before a list could show the answer', async () => {
  const service = afterTask([running, endTurn], { defaultVisibility: {} })
  const { code, err } = await service.run(['events', 'run', 'do it', '--deadline', '3'])
  expect([code, err]).toEqual([0, expect.stringContaining('the agent gave no answer')])
})

test.each([
  ['events', 'run', 'do it', '--last'],
  ['events', 'send', 'do it', '--follow'],
])('%s %s ends although a service without event ids shows session.status_running late', async (...argv) => {
  const service = afterTask([late(running), says('the answer'), endTurn], { hasNoIds: true })
  const { code, out } = await service.run([...argv, '--deadline', '120'])
  expect([code, out]).toEqual([0, expect.stringContaining('the answer\n')])
})

const hidden = [says('late'), endTurn].map((event) => shown(event, { listed: 60_000 }))
const createReplayingService = () =>
  afterTask([running, says('first'), shown(says('answer'), { after: 20_000 }), endTurn], {
    history: [userSays('before'), running, says('earlier'), ...hidden],
    defaultVisibility: { listed: 60_000 },
    streams: [{ nth: 1, cutAfter: 3 }, { replay: 'all' }],
  })

test('events send --follow prints only events after the sent event', async () => {
  const { code, out } = await createReplayingService().run(['events', 'send', 'do it', '--follow'])
  expect([code, out.match(/^[^\t\n]+$/gm)]).toEqual([0, ['first', 'answer']])
})

test('events run ignores idle events and messages from before its task', async () => {
  expect(await createReplayingService().run(runArguments)).toMatchObject({ code: 0, out: 'answer\n' })
})

test('events run prints the answer to the second of two equal tasks, although the list does not show the first task yet', async () => {
  const answerWith = (text: string) => [running, shown(says(text), { after: 20_000 }), endTurn]
  const response = 'no data' as const
  const posts = ['one', 'two'].map((text, i) => ({ nth: i + 1, response, next: answerWith(text) }))
  const service = afterTask([], { posts, defaultVisibility: { listed: 60_000 } })
  const argv = [...runArguments, '--audit', 'a.ndjson']
  expect((await service.run(argv)).out).toBe('one\n')
  expect((await service.run(argv)).out).toBe('two\n')
})
