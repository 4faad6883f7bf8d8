import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import { SessionState } from '../../../src/sessions/session-state.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'
import { scaleRuns } from '../../harness/property-runs.ts'

const uses = ['t1', 't2', 't3']

const idle = (more: object = {}): SessionEvent => ({ type: 'session.status_idle', ...more })
const waits = (ids: string[]) => idle({ stop_reason: { type: 'requires_action', event_ids: ids } })
const evaluates = (result: string): SessionEvent => ({ type: 'span.outcome_evaluation_end', result })

/** Any event that changes the state. These histories are longer and odder than the histories of a service. */
const anyEvent: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.constantFrom<SessionEvent>(
    { type: 'session.status_running' },
    { type: 'session.status_terminated' },
    { type: 'user.message' },
    { type: 'user.interrupt' },
    { type: 'agent.message', content: 'a' },
    { type: 'agent.thinking' },
    { type: 'session.error', error: { message: 'one' } },
    { type: 'session.error', error: { message: 'two' } },
    idle({ stop_reason: { type: 'end_turn' } }),
    idle({ stop_reason: { type: 'requires_action' } }),
    idle({ stop_reason: { type: 'retries_exhausted' } }),
    evaluates('needs_revision'),
    evaluates('max_iterations_reached'),
  ),
  fc.subarray(uses, { minLength: 1 }).map(waits),
  fc
    .record({
      type: fc.constantFrom('user.tool_confirmation', 'agent.tool_result', 'user.tool_result'),
      tool_use_id: fc.constantFrom(...uses),
      result: fc.constantFrom('allow', 'deny'),
    })
    .map((event): SessionEvent => event),
)

/** A history with each tool use once, before the events that name it. */
const histories = fc
  .record({
    events: fc.array(anyEvent, { minLength: 3, maxLength: 20 }),
    places: fc.tuple(fc.nat(6), fc.nat(10), fc.nat(20)),
    hasIds: fc.boolean(),
  })
  .map(({ events, places, hasIds }): EventItem[] => {
    const whole = [...events]
    for (const [i, place] of places.entries()) {
      const id = uses[i] as string
      const mention = whole.findIndex((event) => JSON.stringify(event).includes(id))
      const end = mention < 0 ? whole.length : mention
      whole.splice(Math.min(place, end), 0, { type: 'agent.tool_use', name: 'bash', input: {}, id })
    }
    return whole.map((event, at) => {
      const id = event.id ?? (hasIds ? `e${at}` : undefined)
      // Equal events without an id have different times.
      const named = id === undefined ? { ...event, processed_at: `${at}` } : { ...event, id }
      return { event: named, text: JSON.stringify(named) }
    })
  })

/**
 * Splits a history into one list and then steps. A stream delivers the next events, and may omit or repeat
 * each of them, or is cut and delivers some again. A list shows the history up to a point that never moves
 * back, and may omit events.
 */
const deliveries = fc.record({
  first: fc.nat(10),
  steps: fc.array(
    fc.oneof(
      fc.record({
        does: fc.constant('stream' as const),
        count: fc.integer({ min: 1, max: 6 }),
        omits: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
        repeats: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
      }),
      fc.record({ does: fc.constant('cut' as const), loses: fc.nat(3), replays: fc.nat(4) }),
      fc.record({ does: fc.constant('list' as const), lag: fc.nat(8), isSuffix: fc.boolean() }),
      fc.record({
        does: fc.constant('incomplete list' as const),
        hides: fc.array(fc.nat(25), { maxLength: 3 }),
      }),
    ),
    { maxLength: 14 },
  ),
})

/** Returns everything that decides about replies, commands and the end. */
const describeState = (state: SessionState) => ({
  stop: state.stop,
  answerable: state.answerable,
  pending: state.pending,
  unlisted: state.unlisted,
  lastStopId: state.lastStopId,
  over: uses.map((id) => state.findClosedReason(id)),
  needs: uses.map((id) => [state.getToolUse(id)?.wantsResult ?? false, state.getToolUse(id)?.permission]),
  sendsIdleEvents: state.sendsIdleEvents,
})

function fold(items: readonly EventItem[]): SessionState {
  const state = new SessionState()
  for (const { event, text } of items) state.add(event, text)
  return state
}

interface Step {
  seen: SeenEvents
  received: ReadonlySet<EventItem>
}

/** Delivers a history, calls `check` after each delivery, and in the end shows the whole list. */
function deliver(
  history: readonly EventItem[],
  { first, steps }: typeof deliveries extends fc.Arbitrary<infer T> ? T : never,
  check: (step: Step) => void,
): SeenEvents {
  const seen = new SeenEvents()
  const received = new Set<EventItem>()
  const receive = (items: readonly EventItem[]) => {
    for (const item of items) received.add(item)
    return items
  }
  let next = Math.min(first, history.length)
  let listed = next
  seen.addEarlier(receive(history.slice(0, next)))
  for (const step of steps) {
    if (step.does === 'stream')
      for (let i = 0; i < step.count && next < history.length; i++, next++) {
        const [item] = history.slice(next, next + 1)
        if (!item || step.omits[i]) continue
        receive([item])
        for (const each of step.repeats[i] ? [item, item] : [item]) seen.addStreamed(each)
      }
    else if (step.does === 'cut') {
      next = Math.min(next + step.loses, history.length)
      seen.addConnection()
      // A stream repeats only events that were received before.
      for (const item of history.slice(Math.max(0, next - step.replays), next))
        if (received.has(item)) seen.addStreamed(item)
    } else {
      listed = step.does === 'list' ? Math.max(listed, next - step.lag) : listed
      const whole = history.slice(0, listed)
      const hides = step.does === 'list' ? [] : step.hides
      const shown = whole.filter((item, at) => received.has(item) || !hides.includes(at))
      const start =
        step.does === 'list' && step.isSuffix
          ? Math.max(0, shown.findLastIndex((item) => received.has(item)) - 1)
          : 0
      seen.addList(receive(shown.slice(start)))
    }
    check({ seen, received })
  }
  seen.addList(receive(history))
  check({ seen, received })
  return seen
}

test('the state of a session follows from the received events in the order of the list', () => {
  const property = fc.property(histories, deliveries, (history, delivery) => {
    deliver(history, delivery, ({ seen, received }) => {
      const inOrder = history.filter((item) => received.has(item))
      expect(describeState(seen.state)).toEqual(describeState(fold(inOrder)))
    })
  })
  fc.assert(property, scaleRuns(2000))
})

test('the state of a session follows from its whole history once the list has caught up', () => {
  const property = fc.property(histories, deliveries, fc.boolean(), (history, delivery, isReplied) => {
    const seen = deliver(history, delivery, ({ seen: now }) => {
      // The service accepts replies to tool uses that the session waits for.
      for (const id of isReplied ? now.state.answerable.slice(0, 1) : [])
        if (history.some(({ event }) => event.type === 'user.tool_confirmation' && event.tool_use_id === id))
          now.addAccepted({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' })
    })
    if (!isReplied) expect(describeState(seen.state)).toEqual(describeState(fold(history)))
    expect([...seen.state.stopIds]).toEqual([...fold(history).stopIds])
  })
  fc.assert(property, scaleRuns(2000))
})
