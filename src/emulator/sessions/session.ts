import { formatPath } from '../../wire/json/parse.ts'
import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { newId } from '../response.ts'
import { Agent, type AgentState, newState, readString, replies } from './agent.ts'

export type Parameters = SendEvents['events'][number]

/** An event with its exact JSON. */
export interface ListedEvent {
  id: string | undefined
  type: string
  processedAt: string
  text: string
}

export const toListed = ({ id, type, processed_at: at }: SessionEvent, text: string): ListedEvent => ({
  id,
  type,
  processedAt: at ?? '',
  text,
})

/** Events as they were accepted, or why none was. */
export type Acceptance = { accepted: ListedEvent[] } | { status: 400 | 409; problem: string }

type Listener = (event: ListedEvent) => void

/** What any session has: its events so far, and those who follow them. */
export abstract class Session {
  readonly id: string
  readonly events: ListedEvent[] = []
  readonly #listeners = new Set<Listener>()
  /** Called with how much more memory it takes, about, in characters of JSON. */
  protected readonly onGrowth: (size: number) => void

  constructor(id: string, onGrowth: (size: number) => void) {
    this.id = id
    this.onGrowth = onGrowth
    // An empty one, as measured.
    onGrowth(6000)
  }

  /** Takes all events, in their order, or none. */
  abstract accept(parameters: readonly Parameters[]): Acceptance
  /** Keeps what a client says about it. */
  abstract update(fields: object): void
  /** As the service describes it (public clients, 9). */
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  /** Calls `listener` for each event from now on; returns what ends that. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  protected show(event: ListedEvent): void {
    this.events.push(event)
    this.onGrowth(event.text.length)
    for (const listener of this.#listeners) listener(event)
  }
}

/** A session as it is written down. */
export interface KeptSession {
  id: string
  /** When it was last changed. Milliseconds since the epoch. */
  used: number
  created: string
  updated: string
  fields: object
  /** The JSON of each event. */
  events: string[]
  agent: AgentState
}

/** A session with an agent that reacts to what it is sent. */
export class AgentSession extends Session {
  #kept: Omit<KeptSession, 'id' | 'events'>
  #agent: Agent
  readonly #later: (act: () => void) => void

  /** `later` runs the agent's reaction. */
  constructor(id: string, onGrowth: (size: number) => void, later: (act: () => void) => void) {
    super(id, onGrowth)
    const created = new Date().toISOString()
    this.#kept = { used: Date.now(), created, updated: created, fields: {}, agent: newState() }
    this.#agent = new Agent((type, fields) => this.#add(type, fields), this.#kept.agent, [])
    this.#later = later
  }

  override accept(parameters: readonly Parameters[]): Acceptance {
    const refusal = findMismatch(parameters, this.#agent)
    if (refusal) return refusal
    this.#kept.used = Date.now()
    const before = this.events.length
    for (const parameter of parameters) {
      const isOutcome = parameter.type === 'user.define_outcome'
      const outcome = isOutcome ? { outcome_id: newId('outc') } : {}
      this.#agent.take(this.#add(parameter.type, { ...parameter, ...outcome }))
    }
    const accepted = this.events.slice(before)
    if (this.#agent.isBusy) this.#later(() => this.#agent.react())
    return { accepted }
  }

  override update(fields: object): void {
    this.#kept.fields = { ...this.#kept.fields, ...fields }
    this.#kept.updated = new Date().toISOString()
    this.#kept.used = Date.now()
    this.onGrowth(JSON.stringify(fields).length)
  }

  override describe() {
    const { fields, created, updated } = this.#kept
    return {
      budget: null,
      ...fields,
      // A sender's fields do not take the place of these.
      id: this.id,
      type: 'session',
      status: this.#agent.isBusy ? 'running' : 'idle',
      created_at: created,
      updated_at: updated,
      usage: this.#agent.usage,
    }
  }

  keep(): KeptSession {
    return { ...this.#kept, id: this.id, events: this.events.map(({ text }) => text) }
  }

  /** Takes over what another process has made of it. */
  load({ id: _, events, ...kept }: KeptSession): void {
    const all = events.map((text) => JSON.parse(text) as SessionEvent)
    this.#kept = kept
    this.#agent = new Agent((type, fields) => this.#add(type, fields), kept.agent, all)
    for (const [index, event] of all.entries())
      if (index >= this.events.length) this.show(toListed(event, events[index] ?? ''))
  }

  #add(type: string, fields: object = {}): SessionEvent {
    const id = newId(type.endsWith('tool_use') ? 'toolu' : 'sevt')
    const own = { id, type, processed_at: new Date().toISOString() }
    // A sender's fields do not take the place of these.
    const event: SessionEvent = { ...own, ...fields, ...own }
    this.show(toListed(event, JSON.stringify(event)))
    return event
  }
}

/**
 * Why events cannot be taken although each is right in itself: a reply is of the wrong kind for its tool use, from another
 * thread (session events, 2.2 and 6), or not the first. A tool use that nobody knows passes.
 */
function findMismatch(parameters: readonly Parameters[], agent: Agent): Acceptance | undefined {
  const answered = new Set<string>()
  for (const [index, event] of (parameters as (Parameters & Record<string, unknown>)[]).entries()) {
    const reply = replies.get(event.type)
    const id = reply && readString(event[reply.field])
    const use = id === undefined ? undefined : agent.toolUse(id)
    if (!reply || !use || id === undefined) continue
    const refuse = (status: 400 | 409, field: string, what: string): Acceptance => ({
      status,
      problem: `${formatPath(['events', index, field])}: ${what}`,
    })
    if (!reply.uses.includes(use.type))
      return refuse(400, reply.field, `is an ${use.type}, not ${reply.uses.join(' or ')}`)
    const { session_thread_id: thread } = event
    if (thread != null && thread !== use.session_thread_id)
      return refuse(400, 'session_thread_id', 'is not the thread that the tool use came from')
    if (answered.has(id) || !agent.state.waiting.includes(id))
      return refuse(409, reply.field, 'waits for no reply: it was answered or interrupted')
    answered.add(id)
  }
  return undefined
}
