import { describe, expect, test } from 'vitest'
import {
  type AuditedTask,
  applyTaskAuditLine,
  computeShortSha256,
  EventListSnapshot,
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

describe('states of a task', () => {
  const known = { alike: 1 }
  const of = (is: AuditedTask['is']): AuditedTask => ({ hash: 'a', is, known })
  const line = (event: 'accepted' | 'refused' | 'unknown' | 'done', hash = 'a') => ({ event, hash })

  test.each([
    [undefined, { event: 'sent', hash: 'a', known } as const, of('posting')],
    [{ ...of('accepted'), hash: 'b' }, { event: 'sent', hash: 'a', known } as const, of('posting')],
    [of('posting'), line('accepted'), of('accepted')],
    [of('posting'), line('unknown'), of('posting')],
    [of('posting'), line('refused'), undefined],
    [of('accepted'), line('done'), undefined],
    [undefined, line('accepted'), undefined],
  ])('after an audit line, the task %j has the next state: %j', (before, next, after) => {
    expect(applyTaskAuditLine(before, next)).toEqual(after)
  })
})

describe('search for a task in a list', () => {
  const task = createMessage('go')
  const [old, other] = [
    { ...createMessage('before'), id: 'e1' },
    { ...createMessage('other'), id: 'e2' },
  ]
  // A list without the events of clients.
  const says2 = { type: 'agent.message', id: 'e2' }
  test.each<[AuditedTask['is'], string | undefined, alike: number, SessionEvent[], boolean]>([
    ['posting', 'e1', 1, [task, old, task], true],
    ['accepted', undefined, 0, [], false],
    ['accepted', undefined, 0, [other], false],
    ['accepted', undefined, 0, [says2], true],
  ])(
    'a task in the state %s, sent after event %s and %i equal tasks, is proved by the list %j: %s',
    async (is, last, alike, events, isShown) => {
      const known = { alike, last, marks: getTaskFingerprints([task]) }
      for (const given of [[task], undefined]) {
        const found = await findTaskInList(createList(events), { hash: 'a', is, known }, given)
        expect(found !== undefined).toBe(isShown)
      }
    },
  )
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

test("the `known` field of the audit file counts listed events like the task's, and has the last event's id", async () => {
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

test('a task in the audit file of an earlier version has no fingerprints, so only new events show that it arrived', async () => {
  for (const [is, isShown] of [
    ['posting', false],
    ['accepted', true],
  ] as const) {
    const list = createList(['e1', 'e2'].map((id) => ({ ...createMessage('go'), id })))
    const found = await findTaskInList(list, { hash: 'a', is, known: { alike: 0, last: 'e1' } }, undefined)
    expect(found !== undefined).toBe(isShown)
  }
})

test.each<[known: unknown, isKnown: boolean]>([
  [{ alike: 0 }, true],
  [{}, false],
  [{ alike: '1' }, false],
  [{ alike: 1, last: 5 }, false],
  [{ alike: 1, marks: [5] }, false],
])('the `known` field %j of an audit file is valid: %j', (known, isKnown) => {
  expect(EventListSnapshot().safeParse(known).success).toBe(isKnown)
})
