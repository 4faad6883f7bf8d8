import { formatPath } from '../../wire/json/parse.ts'
import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { brief, tokensIn } from '../gateway.ts'
import { type EmulatedResponse, errorResponse, newId } from '../response.ts'
import { sampleFor } from '../sample.ts'
import { type Parameters, Session } from './session.ts'
import { readTask, type TaskStep } from './task.ts'

/** All that an agent knows between two turns. It is kept as JSON. */
interface AgentState {
  /** Events that it has not reacted to yet. */
  inbox: SessionEvent[]
  /** What its task still asks for: steps that come together, one round after the other. */
  rounds: TaskStep[][]
  /** The ids of the tool uses that wait for a reply. */
  waiting: string[]
  /** What it has to say when its task is done. */
  lastWord?: string | undefined
  /** Tokens of the whole session. */
  usage: { input: number; output: number }
}

/** A session as it is written down. */
export interface KeptSession {
  id: string
  created: string
  /** When it was last changed, as a text that sorts by time. */
  updated: string
  fields: object
  /** The JSON of each event. */
  events: string[]
  agent: AgentState
}

/** What each reply may answer, and the field that names it. */
export const replies = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

const done = 'The emulated agent is done.'

/** A session with an emulated agent: it takes events in, and reacts to all of them at once. */
export class AgentSession extends Session {
  #kept: Omit<KeptSession, 'id' | 'events'>
  readonly #uses = new Map<string, SessionEvent>()
  readonly #later: (act: () => void) => void

  /** `later` runs the agent's reaction. */
  constructor(id: string, later: (act: () => void) => void) {
    super(id)
    const created = new Date().toISOString()
    const agent = {
      inbox: [],
      rounds: [],
      waiting: [],
      usage: { input: 0, output: 0 },
    }
    this.#kept = { created, updated: created, fields: {}, agent }
    this.#later = later
  }

  override accept(parameters: readonly Parameters[], fields?: object): EmulatedResponse | undefined {
    const refusal = this.#findMismatch(parameters)
    if (refusal) return refusal
    // Of a field that is named `__proto__` an assignment would make the prototype.
    this.#kept.fields = { ...this.#kept.fields, ...fields }
    this.#kept.updated = new Date().toISOString()
    for (const parameter of parameters) {
      const isOutcome = parameter.type === 'user.define_outcome'
      const outcome = isOutcome ? { outcome_id: newId('outc') } : {}
      this.#take(this.#add(parameter.type, { ...parameter, ...outcome }))
    }
    if (this.#isBusy) this.#later(() => this.#react())
    return undefined
  }

  override describe() {
    const { fields, created, updated } = this.#kept
    return {
      budget: null,
      ...fields,
      // A sender's fields do not take the place of these.
      id: this.id,
      type: 'session',
      status: this.#isBusy ? 'running' : 'idle',
      created_at: created,
      updated_at: updated,
      usage: this.#usage,
    }
  }

  keep(): KeptSession {
    return { ...this.#kept, id: this.id, events: this.events.map(({ text }) => text) }
  }

  /** Takes over what another process has made of it. */
  load({ id: _, events, ...kept }: KeptSession): void {
    this.#kept = kept
    for (const text of events.slice(this.events.length)) this.#show(JSON.parse(text), text)
  }

  get #isBusy(): boolean {
    return this.#kept.agent.inbox.length > 0
  }

  #add(type: string, fields: object = {}): SessionEvent {
    const id = newId(type.endsWith('tool_use') ? 'toolu' : 'sevt')
    const own = { id, type, processed_at: new Date().toISOString() }
    // A sender's fields do not take the place of these.
    return this.#show({ ...own, ...fields, ...own })
  }

  #show(event: SessionEvent, text = JSON.stringify(event)): SessionEvent {
    if (event.type.endsWith('tool_use')) this.#uses.set(event.id ?? '', event)
    this.show({ id: event.id, type: event.type, text })
    return event
  }

  /**
   * Why events cannot be taken although each is right in itself: a reply is of the wrong kind for its tool use (session
   * events, 2.2 and 6), or not the first. A tool use that nobody knows passes.
   */
  #findMismatch(parameters: readonly Parameters[]): EmulatedResponse | undefined {
    const answered = new Set<string>()
    for (const [index, event] of (parameters as (Parameters & Record<string, unknown>)[]).entries()) {
      const reply = replies.get(event.type)
      const id = reply && readString(event[reply.field])
      const use = id === undefined ? undefined : this.#uses.get(id)
      if (!reply || !use || id === undefined) continue
      const place = formatPath(['events', index, reply.field])
      if (!reply.uses.includes(use.type))
        return errorResponse(400, `${place}: is an ${use.type}, not ${reply.uses.join(' or ')}`)
      if (answered.has(id) || !this.#kept.agent.waiting.includes(id))
        return errorResponse(409, `${place}: waits for no reply: it was answered or interrupted`)
      answered.add(id)
    }
    return undefined
  }

  /** Takes an event in, to react to it later. There are no threads, so that to interrupt one changes nothing. */
  #take(event: SessionEvent): void {
    const { agent } = this.#kept
    const reply = replies.get(event.type)
    if (reply) agent.waiting = agent.waiting.filter((id) => id !== event[reply.field])
    else if (event.type === 'user.interrupt') {
      if (readString(event.session_thread_id) !== '' || (!this.#isBusy && agent.waiting.length === 0)) return
      Object.assign(agent, { inbox: [], rounds: [], waiting: [], lastWord: undefined })
    } else if (event.type !== 'user.message' && event.type !== 'user.define_outcome') return
    agent.inbox.push(event)
  }

  /** Reacts to the events of its inbox, up to the next rest. */
  #react(): void {
    const { agent } = this.#kept
    const events = agent.inbox
    if (events.length === 0) return
    agent.inbox = []
    if (events.some(({ type }) => type !== 'user.interrupt')) this.#add('session.status_running')
    for (const event of events) {
      const { type } = event
      agent.usage.input += tokensIn(JSON.stringify(event))
      if (type === 'user.message') this.#begin(textsOf(event))
      else if (type === 'user.define_outcome') this.#begin([readString(event.description)])
      else if (replies.has(type)) this.#takeReply(event)
    }
    while (agent.waiting.length === 0 && agent.rounds.length > 0) this.#beginRound()
    const isDone = agent.waiting.length === 0
    if (isDone && agent.lastWord !== undefined) this.#say(agent.lastWord)
    if (isDone) agent.lastWord = undefined
    const reason = isDone ? { type: 'end_turn' } : { type: 'requires_action', event_ids: agent.waiting }
    this.#add('session.usage', { usage: this.#usage })
    this.#add('session.status_idle', { stop_reason: reason })
  }

  #begin(texts: string[]): void {
    const { agent } = this.#kept
    const rounds = readTask(texts)
    const sample = sampleFor(texts)
    agent.lastWord = sample ?? agent.lastWord
    if (rounds.flat().some(({ type }) => type !== 'agent.message'))
      this.#say('The emulated agent wants to use a tool.')
    agent.rounds.push(...rounds)
    if (rounds.length > 0) this.#beginRound()
    else if (sample === undefined)
      this.#say(`The emulated agent read “${brief(texts.join(' '))}”, and has nothing to do.`)
  }

  #beginRound(): void {
    const { agent } = this.#kept
    for (const { type, fields } of agent.rounds.shift() ?? []) {
      const event = this.#write(type, fields)
      if (type === 'agent.message') {
        agent.lastWord = undefined
        continue
      }
      agent.lastWord ??= done
      if (fields.evaluated_permission === 'allow') this.#add(...composeResult(event))
      else agent.waiting.push(event.id ?? '')
    }
  }

  #takeReply(event: SessionEvent): void {
    this.#kept.agent.lastWord ??= done
    const use = this.#uses.get(readString(event[replies.get(event.type)?.field ?? '']))
    if (!use) return
    if (event.type !== 'user.tool_confirmation') this.#say(describeResult(use, event))
    else if (event.result === 'allow') this.#add(...composeResult(use))
    else this.#say(describeDenial(use, readString(event.deny_message)))
  }

  /** Of the whole session (public clients, 9). */
  get #usage(): object {
    const { input, output } = this.#kept.agent.usage
    return {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      // A token costs enough for one turn to show in cents.
      list_cost: { amount: String(Math.ceil((input + 5 * output) / 20)), currency: 'USD' },
    }
  }

  #say(text: string): void {
    this.#write('agent.message', { content: [{ type: 'text', text }] })
  }

  /** Adds what a model would have written. */
  #write(type: string, fields: object): SessionEvent {
    this.#kept.agent.usage.output += tokensIn(JSON.stringify(fields))
    return this.#add(type, fields)
  }
}

function composeResult({ id, type }: SessionEvent): [string, object] {
  const content = [{ type: 'text', text: 'emulated output' }]
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, content }]
    : ['agent.tool_result', { tool_use_id: id, content }]
}

/** A field that no schema checks may have a value of any kind. */
const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

const textsOf = ({ content }: SessionEvent): string[] =>
  Array.isArray(content) ? content.map((block) => readString(block?.text)) : []

function describeDenial({ name }: SessionEvent, reason: string): string {
  return `The emulated agent does without ${name}, which was denied${reason && `: “${brief(reason)}”`}.`
}

function describeResult({ name }: SessionEvent, result: SessionEvent): string {
  const said = `“${brief(readText(result))}”`
  return result.is_error === true
    ? `The emulated agent does without ${name}, which failed: ${said}.`
    : `The emulated agent read what ${name} gave: ${said}.`
}
