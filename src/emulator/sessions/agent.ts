import { formatFieldPath } from '../../wire/json/parse.ts'
import { isToolUseEvent, readEventText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { estimateTokens, shortenQuote } from '../gateway.ts'
import { createJsonSampleForPrompt } from '../json-sample.ts'
import { createRandomId, type EmulatedResponse, toErrorResponse } from '../response.ts'
import { type ClientEvent, EmulatedSession } from './session.ts'
import { parseTaskSteps, type TaskStep } from './task.ts'

/** State of a session and its agent, which a `SessionStore` saves as JSON. */
export interface StoredSession {
  id: string
  created: string
  /** Time in ISO 8601, so that sessions can be sorted by this text. */
  updated: string
  clientFields: object
  eventTexts: string[]
  inbox: SessionEvent[]
  /** Remaining steps of the task. The agent executes the steps of a round together. */
  rounds: TaskStep[][]
  unansweredToolUseIds: string[]
  finalMessage?: string | undefined
  tokens: { input: number; output: number }
}

/**
 * For each type of reply: the field with the id of the tool use, and the types of the answered tool uses.
 */
export const toolReplyTypes = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

const doneText = 'The emulated agent is done.'

/** A session accepts all events of a request. Its agent then reacts to all of them at once. */
export class AgentSession extends EmulatedSession {
  #state: Omit<StoredSession, 'id' | 'eventTexts'>
  readonly #schedule: (act: () => void) => void

  constructor(id: string, schedule: (act: () => void) => void) {
    super(id)
    const created = new Date().toISOString()
    this.#state = {
      created,
      updated: created,
      clientFields: {},
      inbox: [],
      rounds: [],
      unansweredToolUseIds: [],
      tokens: { input: 0, output: 0 },
    }
    this.#schedule = schedule
  }

  override accept(parameters: readonly ClientEvent[], fields?: object): EmulatedResponse | undefined {
    const refusal = this.#checkEvents(parameters)
    if (refusal) return refusal
    const wasOverBudget = this.#isOverBudget
    // `Object.assign` would set the prototype if a client's field is named `__proto__`.
    this.#state.clientFields = { ...this.#state.clientFields, ...fields }
    this.#state.updated = new Date().toISOString()
    for (const parameter of parameters) {
      const isOutcome = parameter.type === 'user.define_outcome'
      const outcome = isOutcome ? { outcome_id: createRandomId('outc') } : {}
      this.#acceptEvent(this.#emit(parameter.type, { ...parameter, ...outcome }))
    }
    if (wasOverBudget && !this.#isOverBudget) this.#state.inbox.push({ type: 'session.updated' })
    if (this.#isBusy) this.#schedule(() => this.#react())
    return undefined
  }

  override describe() {
    const { clientFields, created, updated } = this.#state
    return {
      budget: null,
      ...clientFields,
      // These fields come last, so that a client's fields do not replace them.
      id: this.id,
      type: 'session',
      status: this.#isBusy ? 'running' : 'idle',
      created_at: created,
      updated_at: updated,
      usage: this.#usage,
    }
  }

  toStored(): StoredSession {
    return { ...this.#state, id: this.id, eventTexts: this.events.map(({ text }) => text) }
  }

  load({ id: _, eventTexts, ...stored }: StoredSession): void {
    this.#state = stored
    for (const text of eventTexts.slice(this.events.length)) this.#addEvent(JSON.parse(text), text)
  }

  get #isBusy(): boolean {
    return this.#state.inbox.length > 0
  }

  #emit(type: string, fields: object = {}): SessionEvent {
    const id = createRandomId(type.endsWith('tool_use') ? 'toolu' : 'sevt')
    const own = { id, type, processed_at: new Date().toISOString() }
    // The first spread puts these fields at the start of the JSON. The last one overrides a client's fields.
    return this.#addEvent({ ...own, ...fields, ...own })
  }

  #addEvent(event: SessionEvent, text = JSON.stringify(event)): SessionEvent {
    this.publish({ event, text })
    return event
  }

  #findToolUse(id: string): SessionEvent | undefined {
    return this.events.find(({ event }) => event.id === id && isToolUseEvent(event))?.event
  }

  /**
   * Returns an error response for a message if the session waits or is over its budget. Also refuses a reply
   * if its tool use is unknown, does not wait or needs another type of reply.
   */
  #checkEvents(parameters: readonly ClientEvent[]): EmulatedResponse | undefined {
    const waiting = new Set(this.#state.unansweredToolUseIds)
    for (const [index, event] of (parameters as (ClientEvent & Record<string, unknown>)[]).entries()) {
      const refuse = (status: number, field: string[], problem: string) =>
        toErrorResponse(status, `${formatFieldPath(['events', index, ...field])}: ${problem}`)
      if (event.type === 'user.interrupt' && readString(event.session_thread_id) === '') waiting.clear()
      if (event.type === 'user.message') {
        if (waiting.size > 0)
          return refuse(400, [], `the session waits for an answer to ${[...waiting].join(', ')}`)
        if (this.#isOverBudget) return refuse(400, [], 'the session is over its budget')
      }
      const form = toolReplyTypes.get(event.type)
      if (!form) continue
      const { field, uses } = form
      const id = readString(event[field])
      const use = this.#findToolUse(id)
      if (!use) return refuse(400, [field], `${id} is not a tool use of ${this.id}`)
      if (!uses.includes(use.type)) return refuse(400, [field], `is an ${use.type}, not ${uses.join(' or ')}`)
      if (!waiting.delete(id))
        return refuse(409, [field], 'does not wait for a reply: it was answered or interrupted')
    }
    return undefined
  }

  #acceptEvent(event: SessionEvent): void {
    const reply = toolReplyTypes.get(event.type)
    if (reply)
      this.#state.unansweredToolUseIds = this.#state.unansweredToolUseIds.filter(
        (id) => id !== event[reply.field],
      )
    else if (event.type === 'user.interrupt') {
      if (!this.#applyInterrupt(event)) return
    } else if (event.type !== 'user.message' && event.type !== 'user.define_outcome') return
    this.#state.inbox.push(event)
  }

  /** Returns false if the agent was neither working nor waiting, or if the interrupt is for a child thread. */
  #applyInterrupt(event: SessionEvent): boolean {
    const isIdle = !this.#isBusy && this.#state.unansweredToolUseIds.length === 0
    if (isIdle || readString(event.session_thread_id) !== '') return false
    Object.assign(this.#state, { inbox: [], rounds: [], finalMessage: undefined, unansweredToolUseIds: [] })
    return true
  }

  #react(): void {
    const events = this.#state.inbox.splice(0)
    if (events.length === 0) return
    if (events.some(({ type }) => type !== 'user.interrupt')) this.#emit('session.status_running')
    for (const event of events) {
      const { type } = event
      this.#state.tokens.input += estimateTokens(JSON.stringify(event))
      if (type === 'user.message') this.#startTask(readTexts(event))
      else if (type === 'user.define_outcome') this.#startTask([readString(event.description)])
      else if (toolReplyTypes.has(type)) this.#applyReply(event)
    }
    const { unansweredToolUseIds: waiting, rounds } = this.#state
    while (waiting.length === 0 && rounds.length > 0) this.#startRound()
    const isDone = waiting.length === 0
    if (isDone) {
      if (this.#state.finalMessage !== undefined) this.#sendMessage(this.#state.finalMessage)
      this.#state.finalMessage = undefined
    }
    const reason = isDone ? { type: 'end_turn' } : { type: 'requires_action', event_ids: waiting }
    const stop = isDone && this.#isOverBudget ? { type: 'budget_reached' } : reason
    const { budget } = this.#state.clientFields as { budget?: object }
    this.#emit('session.usage', { usage: this.#usage, ...(budget ? { budget } : {}) })
    this.#emit('session.status_idle', { stop_reason: stop })
  }

  #startTask(texts: string[]): void {
    const rounds = parseTaskSteps(texts)
    const sample = createJsonSampleForPrompt(texts)
    this.#state.finalMessage = sample ?? this.#state.finalMessage
    if (rounds.flat().some(({ type }) => type.endsWith('tool_use')))
      this.#sendMessage('The emulated agent wants to use a tool.')
    this.#state.rounds.push(...rounds)
    if (rounds.length > 0) this.#startRound()
    else if (sample === undefined)
      this.#sendMessage(`The emulated agent read “${shortenQuote(texts.join(' '))}”, and has nothing to do.`)
  }

  #startRound(): void {
    for (const step of this.#state.rounds.shift() ?? []) {
      const isMessage = step.type === 'agent.message'
      this.#state.finalMessage = isMessage ? undefined : (this.#state.finalMessage ?? doneText)
      const event = this.#addGenerated(step.type, step.fields)
      if (step.fields.evaluated_permission === 'allow') this.#emit(...createResult(event))
      else if (!isMessage) this.#state.unansweredToolUseIds.push(event.id ?? '')
    }
  }

  #applyReply(event: SessionEvent): void {
    this.#state.finalMessage ??= doneText
    const use = this.#findToolUse(readString(event[toolReplyTypes.get(event.type)?.field ?? '']))
    if (!use) return
    if (event.type !== 'user.tool_confirmation') this.#sendMessage(describeResult(use, event))
    else if (event.result === 'allow') this.#emit(...createResult(use))
    else this.#sendMessage(describeDenial(use, readString(event.deny_message)))
  }

  get #isOverBudget(): boolean {
    const { budget } = this.#state.clientFields as { budget?: { max_list_cost: { amount: string } } }
    return budget != null && this.#costCents >= Number(budget.max_list_cost.amount)
  }

  /** Even a short task costs at least a cent, so that users can try out budgets. */
  get #costCents(): number {
    const { input, output } = this.#state.tokens
    return Math.ceil((input + 5 * output) / 20)
  }

  get #usage(): object {
    const { input, output } = this.#state.tokens
    return {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      list_cost: { amount: String(this.#costCents), currency: 'USD' },
    }
  }

  #sendMessage(text: string): void {
    this.#addGenerated('agent.message', { content: [{ type: 'text', text }] })
  }

  #addGenerated(type: string, fields: object): SessionEvent {
    this.#state.tokens.output += estimateTokens(JSON.stringify(fields))
    return this.#emit(type, fields)
  }
}

function createResult({ id, type }: SessionEvent): [string, object] {
  const content = [{ type: 'text', text: 'emulated output' }]
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, content }]
    : ['agent.tool_result', { tool_use_id: id, content }]
}

/** No schema checks the fields of events, so a field may have any type. */
const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

const readTexts = ({ content }: SessionEvent): string[] =>
  Array.isArray(content) ? content.map((block) => readString(block?.text)) : []

function describeDenial({ name }: SessionEvent, reason: string): string {
  return `The emulated agent does without ${name}, which was denied${reason && `: “${shortenQuote(reason)}”`}.`
}

function describeResult({ name }: SessionEvent, result: SessionEvent): string {
  const quoted = `“${shortenQuote(readEventText(result))}”`
  return result.is_error === true
    ? `The emulated agent does without ${name}, which failed: ${quoted}.`
    : `The emulated agent read the result of ${name}: ${quoted}.`
}
