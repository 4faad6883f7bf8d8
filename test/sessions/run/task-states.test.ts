import { expect, test } from 'vitest'
import { KnownEvents } from '../../../src/sessions/running/audit.ts'
import {
  type AuditedTask,
  computeShortSha256,
  findTaskInList,
  getTaskFingerprints,
  TaskEventCounter,
} from '../../../src/sessions/running/task.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

const createMessage = (text: string): SessionEvent => ({
  type: 'user.message',
  content: [{ type: 'text', text }],
})

/** Lists events with one event per page. */
async function* createList(events: readonly SessionEvent[]) {
  for (const event of events) yield [{ event, text: JSON.stringify(event) }]
}

const task = createMessage('go')
const old = { ...createMessage('before'), id: 'e1' }
const other = { ...createMessage('other'), id: 'e2' }
const marks = getTaskFingerprints([task])
const posting = { is: 'posting', known: { alike: 1, last: 'e1', marks } } as const
const accepted = { is: 'accepted', known: { alike: 0, marks } } as const
test.each<[proof: string, title: string, Omit<AuditedTask, 'hash'>, list: SessionEvent[]]>([
  ['proves', 'has one more event equal to the task than before', posting, [task, old, task]],
  ['does not prove', 'is empty', accepted, []],
  ['does not prove', 'has only another message', accepted, [other]],
  ['proves', 'has new events, but no events of clients', accepted, [{ type: 'agent.message', id: 'e2' }]],
])('a list %s that a task arrived if the list %s', async (proof, _, earlier, list) => {
  const found = await findTaskInList(createList(list), { hash: 'a', ...earlier })
  expect(found !== undefined).toBe(proof === 'proves')
})

test('the hash of a task depends on its bytes, and the fingerprint of an event on its content', () => {
  expect(computeShortSha256(Buffer.from('go'))).toMatch(/^[0-9a-f]{32}$/)
  expect(computeShortSha256(Buffer.from('go'))).not.toBe(computeShortSha256(Buffer.from('go ')))
  const [first, ...others] = getTaskFingerprints([
    createMessage('a'),
    { ...createMessage('a'), id: 'e1' },
    createMessage('b'),
  ])
  expect(first).toMatch(/^user\.message [0-9a-f]{32}$/)
  expect(others).toHaveLength(1)
})

test('TaskEventCounter counts the listed events that equal an event of the task, and keeps the last id', async () => {
  const task = [createMessage('a'), createMessage('b')]
  const counter = new TaskEventCounter(getTaskFingerprints(task))
  const none = { alike: 0, last: undefined, marks: getTaskFingerprints(task) }
  expect(counter.known).toEqual(none)
  const item = (event: SessionEvent) => ({ event, text: '' })
  for (const event of [
    createMessage('a'),
    createMessage('c'),
    { ...createMessage('b'), type: 'system.message' },
  ])
    counter.add(item(event))
  expect(counter.known).toEqual({ ...none, alike: 1 })
  counter.add(item({ ...createMessage('b'), id: 'e1' }))
  expect(counter.known).toEqual({ ...none, alike: 2, last: 'e1' })
})

test.each<[known: unknown, verb: 'is' | 'is not']>([
  [{ alike: 0, marks: [] }, 'is'],
  [{ alike: 0 }, 'is not'],
  [{ alike: '1', marks: [] }, 'is not'],
  [{ alike: 1, last: 5, marks: [] }, 'is not'],
  [{ alike: 1, marks: [5] }, 'is not'],
])('%j %s a valid `known` field of an audit file', (known, verb) => {
  expect(KnownEvents().safeParse(known).success).toBe(verb === 'is')
})
