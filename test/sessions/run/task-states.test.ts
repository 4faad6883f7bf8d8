import { expect, test } from 'vitest'
import type { AuditedTask } from '../../../src/sessions/running/task.ts'
import {
  applyTaskAuditLine,
  computeShortSha256,
  createListFacts,
  findRepetition,
  findTaskInList,
} from '../../../src/sessions/running/task.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

const createMessage = (text: string) =>
  ({ type: 'user.message', content: [{ type: 'text', text }] }) as SessionEvent

/** Lists events with one event per page. */
async function* createList(events: readonly SessionEvent[]) {
  for (const event of events) yield [{ event, text: JSON.stringify(event) }]
}

const task = createMessage('go')
const old = { ...createMessage('before'), id: 'e1' }
const other = { ...createMessage('other'), id: 'e2' }
const [first, second] = ['t1', 't2'].map((id) => ({ ...task, id })) as [SessionEvent, SessionEvent]
const [work, more] = ['w1', 'w2'].map((id) => ({ type: 'agent.message', id })) as [SessionEvent, SessionEvent]
const { marks } = createListFacts([task])
const posting = { is: 'posting', known: { alike: 1, last: 'e1', marks } } as const
const accepted = { is: 'accepted', known: { alike: 0, marks } } as const
const acceptedAfter = { is: 'accepted', known: { alike: 0, last: 'w1', marks } } as const
const sentAfter = { ...acceptedAfter, is: 'posting' } as const
type Row = [string[] | undefined, string, Omit<AuditedTask, 'hash'>, SessionEvent[], after?: string]
test.each<Row>([
  [['t2'], 'has one more event equal to the task than before', posting, [first, old, second, other]],
  [[], 'has one more event equal to the task, which has no id', posting, [first, old, task]],
  [undefined, 'has no more events equal to the task than before', posting, [old, first]],
  [undefined, 'is empty', accepted, []],
  [undefined, 'has only another message', accepted, [other]],
  [undefined, 'has only another message, which has no id', accepted, [createMessage('other')]],
  [['e2'], 'has the message that --after names', posting, [old, other], 'e2'],
  [[], 'has events of an accepted task, but no events of clients', accepted, [work]],
  [[], 'has an event after the last known event, but no events of clients', acceptedAfter, [work, more]],
  [undefined, 'has an event before the last known event, but no later one', acceptedAfter, [more, work]],
  [undefined, 'has a later message of another client', acceptedAfter, [work, other]],
  [undefined, 'has a later event, but nothing proves the acceptance', sentAfter, [work, more]],
])('findTaskInList finds the event ids %j of a task if the list %s', async (ids, _, earlier, list, after) => {
  const found = await findTaskInList(createList(list), { hash: 'a', ...earlier }, after)
  expect(found).toEqual(ids && { ids: new Set(ids), isTask: true })
})

test('findTaskInList finds an event of --after that is not a task', async () => {
  const found = await findTaskInList(createList([old, work]), { hash: 'a', ...posting }, 'w1')
  expect(found).toEqual({ ids: new Set(['w1']), isTask: false })
})

const same = "the session's last user.message is the same task"
const unfinished = 'the audit file shows that an earlier run sent this task and did not finish it'
test.each<[lastEvent: string | undefined, reasons: (string | undefined)[]]>([
  [undefined, [undefined, same]],
  ['refused', [undefined, same]],
  ['done', [undefined, undefined]],
  ['sent', [unfinished, unfinished]],
  ['unknown', [unfinished, unfinished]],
  ['accepted', [unfinished, unfinished]],
])('after the audit event %s, a run repeats a task without or with an equal one: %j', (last, expected) => {
  expect([false, true].map((ends) => findRepetition(last, ends))).toEqual(expected)
})

test('the hash of a task depends on its bytes, and the fingerprint of an event on its content', () => {
  expect(computeShortSha256(Buffer.from('go'))).toMatch(/^[0-9a-f]{32}$/)
  expect(computeShortSha256(Buffer.from('go'))).not.toBe(computeShortSha256(Buffer.from('go ')))
  const messages = [createMessage('a'), { ...createMessage('a'), id: 'e1' }, createMessage('b')]
  const [first, ...others] = createListFacts(messages).marks
  expect(first).toMatch(/^user\.message [0-9a-f]{32}$/)
  expect(others).toHaveLength(1)
})

test('a sent task whose audit line has an invalid `known` field matches no event', () => {
  const none = { alike: 0, marks: [] }
  for (const known of [undefined, { alike: 1 }, { alike: 1, last: 5, marks: [] }, { alike: 1, marks: [5] }])
    expect(applyTaskAuditLine(undefined, { event: 'sent', hash: 'a', known })?.known).toEqual(none)
})

test('an audit line about another task has no effect', () => {
  const earlier: AuditedTask = { hash: 'a', ...posting }
  for (const event of ['accepted', 'refused', 'done'])
    expect(applyTaskAuditLine(earlier, { event, hash: 'b', known: undefined })).toBe(earlier)
})
