import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { startOf } from '../../wire/text-start.ts'
import { tokensIn } from '../gateway/chat.ts'
import { sampleFor } from '../sample.ts'
import { readTask, type TaskStep } from './task.ts'

/** All that an agent knows between two turns. It is kept as JSON. */
export interface AgentState {
  /** Events that it has not reacted to yet. */
  inbox: SessionEvent[]
  /** What its task still asks for: steps that come together, one round after the other. */
  rounds: TaskStep[][]
  /** The ids of the tool uses that wait for a reply. */
  waiting: string[]
  /** It says a last word when its task is done. */
  isAtTask: boolean
  /** Its task had it say the last word already. */
  hasLastWord: boolean
  /** What it says last, if the task asks for JSON. */
  lastWord?: string | undefined
  threads: string[]
  /** Tokens, and how many there were at the last rest. */
  usage: { input: number; output: number }
  rested: { input: number; output: number }
}

export const newState = (): AgentState => ({
  inbox: [],
  rounds: [],
  waiting: [],
  isAtTask: false,
  hasLastWord: false,
  threads: [],
  usage: { input: 0, output: 0 },
  rested: { input: 0, output: 0 },
})

/** What each reply may answer, and the field that names it. */
export const replies = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

/** Adds an event to a session. */
type AddEvent = (type: string, fields?: object) => SessionEvent

/** An emulated agent: it takes events in, and reacts to all of them at once. */
export class Agent {
  readonly state: AgentState
  readonly #add: AddEvent
  readonly #uses = new Map<string, SessionEvent>()
  /** Threads that work since the last rest. */
  readonly #working = new Set<string>()

  constructor(add: AddEvent, state: AgentState, events: readonly SessionEvent[]) {
    this.#add = add
    this.state = state
    for (const event of events) if (event.type.endsWith('tool_use')) this.#uses.set(event.id ?? '', event)
  }

  get isBusy(): boolean {
    return this.state.inbox.length > 0
  }

  toolUse(id: string): SessionEvent | undefined {
    return this.#uses.get(id)
  }

  /** Takes an event in, to react to it later. */
  take(event: SessionEvent): void {
    const { state } = this
    const reply = replies.get(event.type)
    if (reply) state.waiting = state.waiting.filter((id) => id !== event[reply.field])
    else if (event.type === 'user.interrupt') {
      if (!this.#interrupt(readString(event.session_thread_id))) return
    } else if (event.type !== 'user.message' && event.type !== 'user.define_outcome') return
    state.inbox.push(event)
  }

  /** Returns whether there was something to interrupt. */
  #interrupt(thread: string): boolean {
    const { state } = this
    if (thread !== '') {
      const left = state.waiting.filter((id) => this.#uses.get(id)?.session_thread_id !== thread)
      const isFewer = left.length < state.waiting.length
      state.waiting = left
      return isFewer
    }
    if (!this.isBusy && state.waiting.length === 0) return false
    Object.assign(state, { inbox: [], rounds: [], waiting: [], isAtTask: false, lastWord: undefined })
    return true
  }

  /** Reacts to the events of its inbox, up to the next rest. */
  react(): void {
    const { state } = this
    const events = state.inbox
    if (events.length === 0) return
    state.inbox = []
    if (events.some(({ type }) => type !== 'user.interrupt')) this.#add('session.status_running')
    for (const event of events) {
      const { type } = event
      state.usage.input += tokensIn(JSON.stringify(event))
      if (type === 'user.message') this.#begin(textsOf(event))
      else if (type === 'user.define_outcome') this.#begin([readString(event.description)])
      else if (replies.has(type)) this.#takeReply(event)
    }
    while (state.waiting.length === 0 && state.rounds.length > 0) this.#beginRound()
    if (state.waiting.length > 0) this.#rest('requires_action', { event_ids: state.waiting })
    else this.#endTurn()
  }

  #begin(texts: string[]): void {
    const { state } = this
    const { rounds, remarks } = readTask(texts)
    for (const remark of remarks) this.#say(remark)
    state.lastWord = sampleFor(texts)
    if (rounds.length > 0) {
      if (rounds.flat().some(({ type }) => type !== 'agent.message'))
        this.#say('The emulated agent wants to use a tool.')
      state.rounds.push(...rounds)
      state.isAtTask = true
      this.#beginRound()
    } else if (state.lastWord !== undefined) state.isAtTask = true
    else if (remarks.length === 0)
      this.#say(`The emulated agent read “${startOf(texts.join(' '), 80)}”, and has nothing to do.`)
  }

  #beginRound(): void {
    const { state } = this
    for (const { type, fields, isUnasked } of state.rounds.shift() ?? []) {
      const { session_thread_id: thread } = fields
      if (thread !== undefined) this.#enter(thread)
      const event = this.#write(type, fields)
      state.hasLastWord = type === 'agent.message' && thread === undefined
      if (type === 'agent.message') continue
      this.#uses.set(event.id ?? '', event)
      if (isUnasked) this.#add(...composeResult(event))
      else state.waiting.push(event.id ?? '')
    }
  }

  #enter(thread: string): void {
    if (!this.state.threads.includes(thread)) {
      this.#add('session.thread_created', { session_thread_id: thread })
      this.state.threads.push(thread)
    }
    this.#working.add(thread)
  }

  #takeReply(event: SessionEvent): void {
    this.state.isAtTask = true
    this.state.hasLastWord = false
    const use = this.#uses.get(readString(event[replies.get(event.type)?.field ?? '']))
    if (!use) return
    if (event.type !== 'user.tool_confirmation') this.#say(describeResult(use, event))
    else if (event.result === 'allow') this.#add(...composeResult(use))
    else this.#say(describeDenial(use, readString(event.deny_message)))
  }

  #endTurn(): void {
    const { state } = this
    if (state.isAtTask && !state.hasLastWord) this.#say(state.lastWord ?? 'The emulated agent is done.')
    Object.assign(state, { isAtTask: false, hasLastWord: false, lastWord: undefined })
    this.#rest('end_turn')
  }

  #rest(type: string, fields: object = {}): void {
    const idle = { stop_reason: { type: 'end_turn' } }
    for (const thread of this.#working)
      this.#add('session.thread_status_idle', { session_thread_id: thread, ...idle })
    this.#working.clear()
    const { usage, rested } = this.state
    if (usage.output > rested.output) {
      const used = { input_tokens: usage.input - rested.input, output_tokens: usage.output - rested.output }
      const cache = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
      this.#add('span.model_request_end', { is_error: false, model_usage: { ...used, ...cache } })
    }
    this.state.rested = { ...usage }
    this.#add('session.usage', { usage: this.usage })
    this.#add('session.status_idle', { stop_reason: { type, ...fields } })
  }

  /** Of the whole session (public clients, 9). */
  get usage(): object {
    const { input, output } = this.state.usage
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
    this.state.usage.output += tokensIn(JSON.stringify(fields))
    return this.#add(type, fields)
  }
}

function composeResult({ id, type, session_thread_id: thread }: SessionEvent): [string, object] {
  const content = [{ type: 'text', text: 'emulated output' }]
  const place = thread === undefined ? {} : { session_thread_id: thread }
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, content, ...place }]
    : ['agent.tool_result', { tool_use_id: id, content, ...place }]
}

/** A field that no schema checks may have a value of any kind. */
export const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

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

const brief = (text: string): string => (text.length > 80 ? `${startOf(text, 80)}…` : text)
