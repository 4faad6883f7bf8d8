import fc from 'fast-check'
import { createIdleClock } from '../../harness/clock.ts'
import {
  createSessionService,
  type Event,
  type SessionScript,
  type Steps,
  shown,
} from '../../harness/session-service.ts'

/** The end of a turn, and its exit code. */
interface Ending {
  /** Number of tool uses without a reply. */
  open: number
  /** Returns the last event, given the ids of the open tool uses. */
  last(ids: string[]): Event
  code: 0 | 12 | 13
}

const idle = (fields: object = {}): Event => ({ type: 'session.status_idle', ...fields })

const endings = fc.constantFrom<Ending>(
  { open: 0, code: 0, last: () => idle({ stop_reason: { type: 'end_turn' } }) },
  { open: 0, code: 0, last: () => idle({ stop_reason: 'end_turn' }) },
  { open: 0, code: 0, last: () => idle({ stop_reason: null }) },
  { open: 2, code: 12, last: (ids) => idle({ stop_reason: { type: 'requires_action', event_ids: ids } }) },
  { open: 2, code: 12, last: () => idle({ stop_reason: { type: 'requires_action' } }) },
  { open: 1, code: 12, last: () => idle() },
  { open: 0, code: 13, last: () => idle({ stop_reason: { type: 'retries_exhausted' } }) },
  { open: 0, code: 13, last: () => ({ type: 'session.status_terminated' }) },
  { open: 0, code: 13, last: () => ({ type: 'session.deleted' }) },
)

const inThread = (id: string) => ({ session_thread_id: `${id}th` })
const says = (id: string) => ({ id, type: 'agent.message', content: [{ type: 'text', text: id }] })
const usesTool = (id: string) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })

/** The agent's actions. The text of a message is its id, so that a printed line names its event. */
const actions = fc.constantFrom<(id: string) => Event[]>(
  (id) => [says(id)],
  (id) => [{ ...says(id), content: id }],
  (id) => [{ ...says(id), ...inThread(id) }],
  (id) => [{ id, type: 'agent.thinking' }],
  (id) => [{ id, type: 'session.status_rescheduled' }],
  (id) => [{ id, type: 'session.error', error: { message: 'x', retry_status: { type: 'retrying' } } }],
  (id) => [{ id, type: 'brand.new', [`__proto__`]: 1, id_of: 'nothing' }],
  (id) => [
    usesTool(id),
    { id: `${id}r`, type: 'agent.tool_result', tool_use_id: id, content: [{ type: 'text', text: 'out' }] },
  ],
  (id) => [
    { id: `${id}c`, type: 'session.thread_created', ...inThread(id) },
    { ...usesTool(id), ...inThread(id) },
    {
      id: `${id}w`,
      type: 'session.thread_status_idle',
      ...inThread(id),
      stop_reason: { type: 'requires_action', event_ids: [id] },
    },
    { id: `${id}t`, type: 'session.thread_status_terminated', ...inThread(id) },
  ],
  (id) => [
    { id, type: 'workflow_run.created', workflow_run_id: `${id}run` },
    idle({ id: `${id}i`, stop_reason: { type: 'end_turn' } }),
    {
      id: `${id}e`,
      type: 'workflow_run.status_ended',
      workflow_run_id: `${id}run`,
      result: { type: 'completed' },
    },
  ],
)
const agentActions = fc.array(actions, { maxLength: 4 })
type Actions = typeof agentActions extends fc.Arbitrary<infer T> ? T : never

/** Returns a turn from the agent's first action to the idle event. */
function createTurn(name: string, list: Actions, { open, last }: Ending): Event[] {
  const uses = Array.from({ length: open }, (_, i) => `${name}u${i}`)
  return [
    { id: `${name}run`, type: 'session.status_running' },
    ...list.flatMap((act, i) => act(`${name}e${i}`)),
    ...uses.map(usesTool),
    { id: `${name}end`, ...last(uses) },
  ]
}

export const taskText = 'go on'
const message = (id: string, text: string): Event => ({
  id,
  type: 'user.message',
  content: [{ type: 'text', text }],
})

/** Finished turns. A termination or an interrupt without effect may follow each. */
const past = fc
  .array(
    fc.record({
      list: agentActions,
      isSame: fc.boolean(),
      after: fc.constantFrom(undefined, 'session.status_terminated', 'user.interrupt'),
    }),
    { maxLength: 3 },
  )
  .map((turns) =>
    turns.flatMap(({ list, isSame, after }, i) => [
      message(`h${i}m`, isSame ? taskText : 'something else'),
      ...createTurn(`h${i}`, list, { open: 0, code: 0, last: () => idle() }),
      ...(after ? [{ id: `h${i}x`, type: after }] : []),
    ]),
  )

const busy = { status: 503, headers: { 'retry-after': '0' } } as const

const streams = fc.array(
  fc.record({
    replay: fc.oneof(fc.constantFrom(0, 'all' as const), fc.integer({ min: 1, max: 8 })),
    cutAfter: fc.nat(6),
    cut: fc.constantFrom('end' as const, 'reset' as const, 'half' as const),
    cutsAtOnce: fc.boolean(),
    isBusy: fc.constantFrom(false, false, false, true),
    twice: fc.array(fc.nat(8), { maxLength: 2 }),
    name: fc.constantFrom('type', 'message', 'none'),
    hasPieces: fc.boolean(),
  }),
  { minLength: 1, maxLength: 4 },
)
type Stream = (typeof streams extends fc.Arbitrary<infer T> ? T : never)[number]

function frame(event: Event, { name, hasPieces }: Stream): string {
  const write = (value: Event) =>
    `${name === 'none' ? '' : `event: ${name === 'message' ? name : value.type}\n`}data: ${JSON.stringify(value)}\n\n`
  if (!hasPieces || event.type !== 'agent.message') return write(event)
  const { id, type } = event
  const piece = (text: string) => ({
    type: 'event_delta',
    event_id: id,
    delta: { type: 'content_delta', index: 0, content: { type: 'text', text } },
  })
  return [{ type: 'event_start', event: { id, type } }, piece('a'), piece('b'), event].map(write).join('')
}

export interface Limits {
  /** Milliseconds that lists may lag. */
  lagMs: number
  /** Maximum number of newest events that the first list omits if lists lag. */
  late: number
  /** Streams may omit the events of users. */
  isMute: boolean
}

const behaviour = ({ lagMs, late, isMute }: Limits) =>
  fc.record({
    past,
    list: agentActions,
    ending: endings,
    delays: fc.array(fc.constantFrom(0, 10, 300, 5000), { minLength: 30, maxLength: 30 }),
    late: fc.nat(late),
    response: fc.constantFrom('events' as const, 'other ids' as const, 'no data' as const, 'empty' as const),
    processed: fc.constantFrom(0, 'never' as const),
    runsFirst: fc.boolean(),
    echoes: isMute ? fc.boolean() : fc.constant(true),
    lagMs: fc.constantFrom(0, lagMs),
    form: fc.constantFrom('next_page' as const, 'has_more' as const, 'array' as const),
    pageSize: fc.integer({ min: 2, max: 40 }),
    obeys: fc.boolean(),
    busyLists: fc.uniqueArray(fc.constantFrom(2, 4, 5, 9), { maxLength: 2 }),
    streams,
  })
type Behaviour = ReturnType<typeof behaviour> extends fc.Arbitrary<infer T> ? T : never

interface Work {
  history: Event[]
  turn: Event[]
  isSent: boolean
  late: number
}

/** Creates a service that behaves as badly as a correct service may. The last stream is never cut. */
function createScenario(how: Behaviour, { history, turn, isSent, late }: Work) {
  // The times of the events prove nothing about their order.
  const untimed = (events: Event[]) => events.map((event) => ({ ...event, processed_at: undefined }))
  const steps = untimed(turn).map((event, i) => ({ event, after: how.delays[i] ?? 0 }))
  const open = () => {
    const service = createSessionService({
      timers: createIdleClock(),
      history: untimed(history).map((event, i) =>
        i < history.length - late ? event : shown(event, { listed: 3_000 }),
      ),
      posts: [
        {
          response: how.response,
          posted: { processed: how.processed },
          before: how.runsFirst ? [{ type: 'session.status_running' }] : [],
          next: steps.map(({ event, after }) => shown(event, { after })) as Steps,
        },
      ],
      defaultVisibility: { listed: how.lagMs },
      list: { form: how.form, pageSize: how.pageSize, ignores: how.obeys ? [] : ['order', 'types', 'limit'] },
      lists: [
        // The agent continues once a command reads the first list.
        { nth: 1, act: () => void (isSent || work()) },
        ...how.busyLists.map((nth) => ({ nth, fault: busy })),
      ],
      streams: how.streams.map((stream, i) => {
        const isLast = i === how.streams.length - 1
        let count = 0
        return {
          ...(isLast ? {} : { nth: i + 1, cutAfter: stream.cutAfter, cut: stream.cut }),
          ...(isLast || !stream.cutsAtOnce ? {} : { events: [] }),
          ...(!isLast && stream.isBusy ? { fault: busy } : {}),
          // The first stream also delivers events that happen between the first list and the stream.
          replay: stream.replay === 0 && i === 0 && !isSent ? late >> 1 : stream.replay,
          omits: ({ type }) => !how.echoes && type.startsWith('user.'),
          repeats: () => stream.twice.includes(count++),
          frame: (event) => frame(event, stream),
        }
      }),
    } satisfies SessionScript)
    async function work() {
      for (const { event, after } of steps) {
        await service.timers.wait(after)
        service.add(event)
      }
    }
    return service
  }
  return {
    open,
    history,
    turn,
    isSent,
    late,
    lagMs: how.lagMs,
    response: how.response,
    code: how.ending.code,
  }
}
export type Scenario = ReturnType<typeof createScenario>

/**
 * A session that gets a message. Cases that no client can distinguish are excluded: if streams omit the
 * message, the first list is complete; if the receipt has no id, the events that the first list omits have no
 * equal message.
 */
export const sending = (limits: Limits): fc.Arbitrary<Scenario> =>
  behaviour(limits).map((how) => {
    const { past: history, echoes, response, late } = how
    const lastEqual = history.map((event) => JSON.stringify(event).includes(taskText)).lastIndexOf(true)
    const maxLate =
      !echoes || how.lagMs === 0 ? 0 : response === 'events' ? history.length : history.length - 1 - lastEqual
    const turn = createTurn('t', how.list, how.ending).slice(how.runsFirst ? 1 : 0)
    return createScenario(how, { history, turn, isSent: true, late: Math.min(late, maxLate) })
  })

/**
 * A session that works or is idle when it is followed. The first list shows at least the agent's task,
 * because without it no client can detect that the agent works.
 */
export const working = (limits: Limits): fc.Arbitrary<Scenario> =>
  fc.tuple(behaviour(limits), fc.nat(12)).map(([how, started]) => {
    const turn = createTurn('t', how.list, how.ending)
    const done = turn.slice(0, started)
    return createScenario(how, {
      history: [...how.past, message('tm', 'work'), ...done],
      turn: turn.slice(started),
      isSent: false,
      late: how.lagMs === 0 ? 0 : Math.min(how.late, done.length),
    })
  })
