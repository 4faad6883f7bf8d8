import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type LogItem, SessionLog } from '../../../src/sessions/following/session-log.ts'
import { scaleRuns } from '../../harness/property-runs.ts'

const kinds = ['task', 'says', 'says', 'says in a thread', 'interrupt', 'rest'] as const

const types = {
  task: 'user.message',
  says: 'agent.message',
  'says in a thread': 'agent.message',
  interrupt: 'user.interrupt',
  rest: 'session.status_idle',
}

/** The events of a session, in order. */
const histories = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 }).map((list) =>
  list.map((kind, index): LogItem => {
    const id = `e${index}`
    const thread = kind === 'says in a thread' ? { session_thread_id: 'th1' } : {}
    return { identity: id, event: { id, type: types[kind], processed_at: undefined, ...thread }, text: '' }
  }),
)

/**
 * Steps in which parley receives the events. A stream delivers the next events, or loses them by a cut. A
 * list shows the first ones.
 */
const steps = fc.array(
  fc.record({
    does: fc.constantFrom('delivers', 'delivers', 'loses', 'lists'),
    count: fc.integer({ min: 1, max: 4 }),
    lag: fc.nat(5),
  }),
  { maxLength: 12 },
)

test('the answer is the last message of the turn although streams are cut and lists lag', () => {
  const property = fc.property(histories, steps, fc.nat(11), fc.boolean(), (history, known, at, isOwn) => {
    // Index of the sent task, or -1. The log gets no event that precedes the task.
    const own = isOwn
      ? history.findIndex(({ event }, index) => index >= at && event.type === 'user.message')
      : -1
    const log = new SessionLog()
    const { task } = log
    const isOurs = (item: LogItem) => item === history[own]
    if (own >= 0) {
      const { event } = history[own] as LogItem
      task.addSent([event])
      log.addAccepted(event)
    }
    let next = Math.max(own, 0)
    const list = (end: number) => {
      log.addList(history.slice(Math.max(own, 0), Math.max(end, own + 1)), isOurs)
    }
    for (const { does, count, lag } of known) {
      if (does === 'lists') list(next - lag)
      const delivered = does === 'lists' ? [] : history.slice(next, next + count)
      if (does !== 'lists') next += count
      for (const item of does === 'delivers' ? delivered : [])
        if (!log.has(item.identity)) log.append(item, { isOurs: isOurs(item) })
    }
    list(history.length)
    const isTask = ({ event }: LogItem, index: number) =>
      own < 0 ? event.type === 'user.message' : index === own
    const since = history.slice(Math.max(history.findLastIndex(isTask), 0))
    // Another client's task ends the turn of the sent one.
    const end =
      own < 0 ? -1 : since.findIndex(({ event }, index) => index > 0 && event.type === 'user.message')
    const said = (end < 0 ? since : since.slice(0, end)).filter(
      ({ event }) => event.type === 'agent.message' && !('session_thread_id' in event),
    )
    expect(task.answer?.id).toBe(said.at(-1)?.identity)
    expect(task.otherTask?.task.id).toBe(since[end]?.identity)
    const last = since.findLast(({ event }) => event.type.startsWith('user.'))
    expect(task.isInterrupted).toBe(last?.event.type === 'user.interrupt')
  })
  fc.assert(property, scaleRuns(10_000))
})
