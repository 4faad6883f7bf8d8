import fc from 'fast-check'

/** An event of a session, with a unique id. */
export type Event = { id: string; type: string } & Record<string, unknown>

/** The last stream of a session is never cut. */
export interface GeneratedStream {
  /** Number of the newest events that the stream sends first. */
  replay: 'all' | number
  /** Number of frames after which the stream is cut. */
  cutAfter: number
  /** A cut ends the body, resets the connection, or resets the connection within a frame. */
  cut: 'end' | 'reset' | 'half'
  /** Indexes of the frames that are sent twice. */
  twice: readonly number[]
  /** Value of the `event:` line of each frame. */
  name: 'message' | 'type' | 'none'
  hasComments: boolean
  hasPieces: boolean
}

export interface Scenario {
  /** Events before parley starts. */
  history: readonly Event[]
  /** Number of the newest events that the first list omits and that the first stream may deliver. */
  late: number
  /** The turn starts when parley sends a message; otherwise at once. */
  isSent: boolean
  /** The events of the turn, each with its delay in milliseconds after the previous one. */
  turn: readonly { event: Event; after: number }[]
  /** Form of the response to a sent message. */
  receipt: 'whole' | 'ids' | 'other ids' | 'no data' | 'empty'
  /** The list shows `session.status_running` before the message that caused it. */
  runsFirst: boolean
  /** Streams also deliver `user.*` events. */
  echoes: boolean
  /** Number of list requests by which the content of a list lags. */
  lag: number
  list: { form: 'next_page' | 'has_more' | 'array'; size: number; obeys: boolean }
  /** While a stream has no events to deliver, it sends comments. */
  sendsComments: boolean
  streams: readonly GeneratedStream[]
  /** Exit code of parley. */
  code: number
}

/** Id of the event that parley sends. */
export const getSentId = ({ history, runsFirst }: Scenario): string =>
  `e${history.length + (runsFirst ? 2 : 1)}`

/** The end of a turn, and the exit code of parley after it. */
interface Ending {
  /** Number of tool uses without a reply. */
  open: number
  /** Returns the last event, given the ids of the open tool uses. */
  last(ids: string[]): { type: string } & Record<string, unknown>
  code: 0 | 12 | 13
}

const idle = (fields: object = {}) => ({ type: 'session.status_idle', ...fields })

const endings = fc.constantFrom<Ending>(
  { open: 0, code: 0, last: () => idle({ stop_reason: { type: 'end_turn' } }) },
  { open: 0, code: 0, last: () => idle({ stop_reason: 'end_turn' }) },
  { open: 0, code: 0, last: () => idle() },
  { open: 0, code: 0, last: () => idle({ stop_reason: null }) },
  { open: 2, code: 12, last: (ids) => idle({ stop_reason: { type: 'requires_action', event_ids: ids } }) },
  { open: 2, code: 12, last: () => idle({ stop_reason: { type: 'requires_action' } }) },
  { open: 1, code: 12, last: () => idle({ stop_reason: 'requires_action' }) },
  { open: 1, code: 12, last: () => idle() },
  { open: 0, code: 13, last: () => idle({ stop_reason: { type: 'retries_exhausted' } }) },
  { open: 0, code: 13, last: () => ({ type: 'session.status_terminated' }) },
  { open: 0, code: 13, last: () => ({ type: 'session.deleted' }) },
)

/**
 * Events of each action of the agent between a message and the end of the turn. The text of a message is its
 * id, so that a printed line identifies the event.
 */
const actions = {
  says: (id) => [{ id, type: 'agent.message', content: [{ type: 'text', text: id }] }],
  'says as a string': (id) => [{ id, type: 'agent.message', content: id }],
  'says in a thread': (id) => [
    { id, type: 'agent.message', session_thread_id: 'th1', content: [{ type: 'text', text: id }] },
  ],
  thinks: (id) => [{ id, type: 'agent.thinking' }],
  'uses a tool': (id) => [
    { id, type: 'agent.tool_use', name: 'bash', input: { command: 'ls' } },
    { id: `${id}r`, type: 'agent.tool_result', tool_use_id: id, content: [{ type: 'text', text: 'out' }] },
  ],
  'uses a tool in a thread'(id) {
    const thread = { session_thread_id: `${id}th` }
    const waits = { stop_reason: { type: 'requires_action', event_ids: [id] } }
    return [
      { id: `${id}c`, type: 'session.thread_created', ...thread },
      { id, type: 'agent.tool_use', name: 'bash', input: {}, ...thread },
      { id: `${id}w`, type: 'session.thread_status_idle', ...thread, ...waits },
      { id: `${id}t`, type: 'session.thread_status_terminated', ...thread },
    ]
  },
  'uses two tools without a question'(id) {
    const ids = [id, `${id}b`]
    const allowed = { name: 'bash', input: {}, evaluated_permission: 'allow' }
    return [
      ...ids.map((use) => ({ id: use, type: 'agent.tool_use', ...allowed })),
      ...ids.map((use) => ({ id: `${use}r`, type: 'agent.tool_result', tool_use_id: use, content: 'out' })),
    ]
  },
  'runs a workflow'(id) {
    const run = { workflow_run_id: `${id}run` }
    return [
      { id, type: 'workflow_run.created', ...run },
      { id: `${id}i`, ...idle({ stop_reason: { type: 'end_turn' } }) },
      { id: `${id}e`, type: 'workflow_run.status_ended', ...run, result: { type: 'completed' } },
    ]
  },
  'is rescheduled': (id) => [{ id, type: 'session.status_rescheduled' }],
  fails: (id) => [{ id, type: 'session.error', error: { message: 'x', retry_status: { type: 'retrying' } } }],
  'is new': (id) => [{ id, type: 'brand.new', [`__proto__`]: 1, id_of: 'nothing' }],
} satisfies Record<string, (id: string) => Event[]>
type Doing = keyof typeof actions

const doings = fc.array(fc.constantFrom(...(Object.keys(actions) as Doing[])), { maxLength: 4 })

/** Returns a turn from the agent's first action to the idle event. */
function toTurn(name: string, list: readonly Doing[], { open, last }: Ending): Event[] {
  const uses = Array.from({ length: open }, (_, i) => `${name}u${i}`)
  return [
    { id: `${name}run`, type: 'session.status_running' },
    ...list.flatMap((doing, i) => actions[doing](`${name}e${i}`)),
    ...uses.map((id): Event => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })),
    { id: `${name}end`, ...last(uses) },
  ]
}

export const taskText = 'go on'
const message = (id: string, text: string): Event => ({
  id,
  type: 'user.message',
  content: [{ type: 'text', text }],
})

/** Finished turns. After each may come a termination, or an interrupt, which then has no effect. */
const past = fc
  .array(
    fc.record({
      list: doings,
      isSame: fc.boolean(),
      after: fc.constantFrom(undefined, 'session.status_terminated', 'user.interrupt'),
    }),
    { maxLength: 3 },
  )
  .map((turns) =>
    turns.flatMap(({ list, isSame, after }, i) => [
      message(`h${i}m`, isSame ? taskText : 'something else'),
      ...toTurn(`h${i}`, list, { open: 0, code: 0, last: () => idle({ stop_reason: { type: 'end_turn' } }) }),
      ...(after ? [{ id: `h${i}x`, type: after }] : []),
    ]),
  )

const stream: fc.Arbitrary<GeneratedStream> = fc.record({
  replay: fc.oneof(fc.constantFrom(0, 'all' as const), fc.integer({ min: 1, max: 8 })),
  cutAfter: fc.nat(6),
  cut: fc.constantFrom('end', 'reset', 'half'),
  twice: fc.array(fc.nat(8), { maxLength: 2 }),
  name: fc.constantFrom('type', 'message', 'none'),
  hasComments: fc.boolean(),
  hasPieces: fc.boolean(),
})

export interface ScenarioLimits {
  maxLag: number
  maxLate: number
  mayOmitUserEvents: boolean
  maySendComments: boolean
}

const behaviour = ({ maxLag, maxLate, mayOmitUserEvents, maySendComments }: ScenarioLimits) => ({
  past,
  list: doings,
  ending: endings,
  afters: fc.array(fc.constantFrom(0, 10, 300, 5000), { minLength: 20, maxLength: 20 }),
  late: fc.nat(maxLate),
  receipt: fc.constantFrom<Scenario['receipt']>('whole', 'ids', 'other ids', 'no data', 'empty'),
  runsFirst: fc.boolean(),
  echoes: mayOmitUserEvents ? fc.boolean() : fc.constant(true),
  lag: fc.nat(maxLag),
  listing: fc.record({
    form: fc.constantFrom<Scenario['list']['form']>('next_page', 'has_more', 'array'),
    size: fc.integer({ min: 2, max: 40 }),
    obeys: fc.boolean(),
  }),
  sendsComments: maySendComments ? fc.boolean() : fc.constant(false),
  streams: fc.array(stream, { minLength: 1, maxLength: 4 }),
})

/**
 * Generates sessions that get a message. Excludes cases in which no client can find the message. If streams
 * omit the message, the first list is complete. If the response has no id, the first list omits no older
 * message with the same content.
 */
export const sendScenarios = (limits: ScenarioLimits): fc.Arbitrary<Scenario> =>
  fc.record(behaviour(limits)).map(({ past: history, list, ending, afters, listing, ...rest }) => {
    const isNamed = rest.receipt === 'whole' || rest.receipt === 'ids'
    const lastEqual = history.map((event) => JSON.stringify(event).includes(taskText)).lastIndexOf(true)
    const maxLate = !rest.echoes ? 0 : isNamed ? history.length : history.length - 1 - lastEqual
    const turn = toTurn('t', list, ending).slice(rest.runsFirst ? 1 : 0)
    return {
      ...rest,
      history,
      isSent: true,
      late: Math.min(rest.late, maxLate),
      turn: turn.map((event, i) => ({ event, after: afters[i] ?? 0 })),
      list: listing,
      code: ending.code,
    }
  })

/**
 * Generates sessions that work or are idle when parley starts to follow them. The first list of events that
 * parley reads contains at least the task. Without it, no client can detect that the agent works.
 */
export const followScenarios = (limits: ScenarioLimits): fc.Arbitrary<Scenario> =>
  fc
    .tuple(fc.record(behaviour(limits)), fc.nat(12))
    .map(([{ past: before, list, ending, afters, listing, ...rest }, started]) => {
      const turn = toTurn('t', list, ending)
      const done = turn.slice(0, started)
      return {
        ...rest,
        history: [...before, message('tm', 'work'), ...done],
        isSent: false,
        late: Math.min(rest.late, done.length),
        turn: turn.slice(started).map((event, i) => ({ event, after: afters[i] ?? 0 })),
        list: listing,
        code: ending.code,
      }
    })
