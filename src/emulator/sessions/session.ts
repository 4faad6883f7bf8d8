import { formatPath } from '../../wire/json/parse.ts'
import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Budget } from '../../wire/sessions/session-requests.ts'
import { randomId } from '../random.ts'
import { Agent, type AgentState, readString } from './agent.ts'
import { currency, Meter, type MeterState } from './meter.ts'

type Parameters = SendEvents['events'][number]

/** An emulated session: the events so far, whoever listens, and an agent that reacts. */
export interface Session {
  readonly events: readonly SessionEvent[]
  /** About how much memory it takes, in characters of JSON. */
  readonly size: number
  /** Whether the agent has something to do now. */
  readonly isBusy: boolean
  /** Whether something is still to happen in it, or somebody listens. */
  readonly isInUse: boolean
  /** Takes events in, in their order, and returns them as accepted, or none and why. The agent reacts a moment later. */
  accept(parameters: readonly Parameters[]): { accepted: SessionEvent[] } | { mismatch: string }
  /** Takes what a client says about it; of a budget returns why it cannot be taken. An agent that it stopped goes on. */
  update(fields: SessionFields): { mismatch: string } | undefined
  /** As the service describes it (public clients, 9). */
  describe(): { id: string; created_at: string } & Record<string, unknown>
  /** Calls `listener` for each event from now on; returns what ends that. */
  listen(listener: Listener): () => void
  /** All that it is made from again, while its agent is not busy. */
  keep(): KeptSession
  readonly listeners: Set<Listener>
}

type Listener = (event: SessionEvent) => void

/** A session as it is written down. */
export interface KeptSession {
  id: string
  /** When it was last spoken of. Milliseconds since the epoch. */
  used: number
  created: string
  updated: string
  fields: Record<string, unknown>
  events: SessionEvent[]
  agent: AgentState
  meter: MeterState
}

/** What a client may say about a session; other fields are kept as they are. */
interface SessionFields {
  /** `null` removes it. */
  budget?: Budget | null | undefined
  [field: string]: unknown
}

export interface EmulatedSessionOptions {
  id: string
  random: () => number
  /** Milliseconds between two events of the agent. */
  delay: number
  /** Called with each part of its size. */
  grow(size: number): void
  /** How it was written down. */
  kept?: KeptSession | undefined
  /** An earlier state of it: whoever listens to that hears what came since. */
  earlier?: Session | undefined
}

/** What a session takes before much is in it, as measured. */
const emptySize = 12_000

export function createSession(options: EmulatedSessionOptions): Session {
  const { id, random, delay, grow, kept, earlier } = options
  const events = [...(kept?.events ?? [])]
  const created = kept?.created ?? new Date().toISOString()
  let updated = kept?.updated ?? created
  let used = kept?.used ?? Date.now()
  let fields = kept?.fields ?? {}
  const listeners = earlier?.listeners ?? new Set<Listener>()
  let size = 0
  take(events.reduce((sum, event) => sum + JSON.stringify(event).length, emptySize))
  const meter = new Meter(kept?.meter)
  const agent = new Agent({ add, meter, delay, earlier: kept && { state: kept.agent, events } })
  for (const event of events.slice(earlier?.events.length ?? events.length)) tell(event)

  function take(more: number): void {
    size += more
    grow(more)
  }

  function add(type: string, fields: object = {}): SessionEvent {
    const prefix = type.endsWith('tool_use') ? 'toolu' : 'sevt'
    const own = { id: randomId(prefix, random), type, processed_at: new Date().toISOString() }
    // A sender's fields do not take the place of these.
    const text = JSON.stringify({ ...own, ...fields, ...own })
    // Read from JSON it takes a third less memory.
    const event = JSON.parse(text) as SessionEvent
    events.push(event)
    take(text.length)
    meter.add(event)
    tell(event)
    return event
  }

  function tell(event: SessionEvent): void {
    for (const listener of listeners) listener(event)
  }

  return {
    events,
    get size() {
      return size
    },
    get isBusy() {
      return agent.isBusy
    },
    get isInUse() {
      return listeners.size > 0 || agent.isBusy
    },
    accept(parameters) {
      used = Date.now()
      const mismatch = findMismatch(parameters, (id) => agent.toolUse(id)) ?? findExcess(parameters, meter)
      if (mismatch !== undefined) return { mismatch }
      const hasReplies = parameters.some(({ type }) => replies.has(type))
      if (hasReplies) agent.beginReplies()
      const accepted = parameters.map((parameter) => {
        const extra = parameter.type === 'user.define_outcome' ? { outcome_id: randomId('outc', random) } : {}
        const event = add(parameter.type, { ...parameter, ...extra })
        agent.react(event)
        return event
      })
      if (hasReplies) agent.endReplies()
      return { accepted }
    },
    update({ budget, ...others }) {
      used = Date.now()
      const { currency: given } = budget?.max_list_cost ?? {}
      if (given !== undefined && given !== currency)
        return { mismatch: `budget.max_list_cost.currency: must be ${currency}` }
      const wasSpent = meter.isSpent
      if (budget !== undefined) meter.budget = budget ?? undefined
      fields = { ...fields, ...others }
      take(JSON.stringify(others).length)
      updated = new Date().toISOString()
      if (wasSpent && !meter.isSpent) agent.endPause()
      return undefined
    },
    describe: () => ({
      ...fields,
      // A sender's fields do not take the place of these.
      id,
      type: 'session',
      status: agent.isBusy ? 'running' : 'idle',
      created_at: created,
      updated_at: updated,
      usage: meter.usage,
      budget: meter.budget ?? null,
    }),
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    keep: () => ({ id, used, created, updated, fields, events, agent: agent.state, meter: meter.state }),
    listeners,
  }
}

/** Why a session whose budget is used up does not take events: only what settles what is open is taken (public clients, 9). */
function findExcess(events: readonly Parameters[], { isSpent, budget }: Meter): string | undefined {
  const index = isSpent ? events.findIndex(({ type }) => type !== 'user.interrupt' && !replies.has(type)) : -1
  if (index < 0) return undefined
  const { amount, currency: unit } = budget?.max_list_cost ?? {}
  return `${formatPath(['events', index])}: the session has reached its budget of ${amount} (${unit}, minor units): raise or remove it first`
}

/** What each kind of reply may answer, and by which field it names it. */
const replies = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

/**
 * Why events cannot be taken although each is right in itself: a reply is of the wrong kind for its tool use, or
 * from another thread (session events, 2.2 and 6). An id that nobody knows passes.
 */
function findMismatch(
  events: readonly ({ type: string } & Record<string, unknown>)[],
  toolUse: (id: string) => SessionEvent | undefined,
): string | undefined {
  for (const [index, event] of events.entries()) {
    const reply = replies.get(event.type)
    const use = reply && toolUse(readString(event[reply.field]))
    if (!use) continue
    const tell = (field: string, what: string) => `${formatPath(['events', index, field])}: ${what}`
    if (!reply.uses.includes(use.type))
      return tell(reply.field, `is an ${use.type}, not ${reply.uses.join(' or ')}`)
    const { session_thread_id: thread } = event
    if (thread != null && thread !== use.session_thread_id)
      return tell('session_thread_id', 'is not the thread that the tool use came from')
  }
  return undefined
}
