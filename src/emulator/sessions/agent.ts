import { formatFieldPath } from '../../wire/json/parse.ts'
import { isToolUseEvent, readEventText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { estimateTokens, shortenQuote } from '../gateway.ts'
import { createJsonSampleForPrompt } from '../json-sample.ts'
import { createRandomId, type EmulatedResponse, toErrorResponse } from '../response.ts'
import { type ClientEvent, EmulatedSession } from './session.ts'
import { parseTaskSteps, type TaskStep, type WorkflowRunPlan } from './task.ts'

interface Thread {
  id?: string
  unansweredToolUseIds: string[]
}

interface WorkflowRun {
  id: string
  name: string
  events: SessionEvent[]
}

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
  /** The first thread is the main thread, which has no id. */
  threads: [Thread, ...Thread[]]
  runs: WorkflowRun[]
  isRunning: boolean
  finalMessage?: string | undefined
  tokens: { input: number; output: number }
}

/**
 * For each type of reply: the field with the id of the tool use, and the types of tool uses that the reply
 * can answer.
 */
export const toolReplyTypes = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

const isWaiting = ({ unansweredToolUseIds }: Thread): boolean => unansweredToolUseIds.length > 0

const doneText = 'The emulated agent is done.'

/**
 * A session with an emulated agent. The session first accepts all events of a request. Then the agent reacts
 * to all of them together.
 */
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
      threads: [{ unansweredToolUseIds: [] }],
      runs: [],
      isRunning: false,
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
      status: this.#isBusy || this.#state.isRunning ? 'running' : 'idle',
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
    // The first `own` puts these fields at the start of the JSON. The second `own` replaces fields of the
    // client with the same names.
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
   * Returns an error response for a message if the session waits for a reply or is over its budget. Also
   * refuses a reply if its tool use is unknown, does not wait or needs another type of reply.
   */
  #checkEvents(parameters: readonly ClientEvent[]): EmulatedResponse | undefined {
    const all = this.#state.threads.map(({ unansweredToolUseIds: ids }) => new Set(ids))
    const [main = new Set()] = all
    for (const [index, event] of (parameters as (ClientEvent & Record<string, unknown>)[]).entries()) {
      const refuse = (status: number, field: string[], problem: string) =>
        toErrorResponse(status, `${formatFieldPath(['events', index, ...field])}: ${problem}`)
      if (event.type === 'user.interrupt' && readString(event.session_thread_id) === '')
        for (const waiting of all) waiting.clear()
      if (event.type === 'user.message') {
        if (main.size > 0)
          return refuse(400, [], `the session waits for an answer to ${[...main].join(', ')}`)
        if (this.#isOverBudget) return refuse(400, [], 'the session is over its budget')
      }
      const form = toolReplyTypes.get(event.type)
      if (!form) continue
      const { field, uses } = form
      const id = readString(event[field])
      const use = this.#findToolUse(id)
      if (!use) return refuse(400, [field], `${id} is not a tool use of ${this.id}`)
      if (!uses.includes(use.type)) return refuse(400, [field], `is an ${use.type}, not ${uses.join(' or ')}`)
      if (!all.some((waiting) => waiting.delete(id)))
        return refuse(409, [field], 'does not wait for a reply: it was answered, interrupted or refused')
    }
    return undefined
  }

  #acceptEvent(event: SessionEvent): void {
    const reply = toolReplyTypes.get(event.type)
    if (reply) {
      for (const thread of this.#state.threads)
        thread.unansweredToolUseIds = thread.unansweredToolUseIds.filter((id) => id !== event[reply.field])
    } else if (event.type === 'user.interrupt') {
      if (!this.#applyInterrupt(readString(event.session_thread_id))) return
    } else if (event.type !== 'user.message' && event.type !== 'user.define_outcome') return
    this.#state.inbox.push(event)
  }

  /**
   * Interrupts a thread, or all threads if the id is empty. Workflow runs continue. Returns false if none of
   * the threads was working or waiting.
   */
  #applyInterrupt(threadId: string): boolean {
    const isAllThreads = threadId === ''
    const threads = this.#state.threads.filter(({ id }) => isAllThreads || id === threadId)
    const isWorking = isAllThreads && (this.#isBusy || this.#state.isRunning)
    if (!isWorking && !threads.some(isWaiting)) return false
    for (const thread of threads) thread.unansweredToolUseIds = []
    if (isAllThreads) Object.assign(this.#state, { inbox: [], rounds: [], finalMessage: undefined })
    return true
  }

  #react(): void {
    const events = this.#state.inbox.splice(0)
    if (events.length === 0) return
    const runs = new Set(this.#state.runs)
    this.#work(events)
    for (const run of this.#state.runs) if (!runs.has(run)) this.#schedule(() => this.#continueRun(run.id))
  }

  /** If only child threads wait for replies, the session stays running until a thread gets a reply. */
  #work(events: readonly SessionEvent[]): void {
    if (!this.#state.isRunning && events.some(({ type }) => type !== 'user.interrupt'))
      this.#emit('session.status_running')
    this.#state.isRunning = true
    for (const event of events) {
      const { type } = event
      this.#state.tokens.input += estimateTokens(JSON.stringify(event))
      if (type === 'user.message') this.#startTask(readTexts(event))
      else if (type === 'user.define_outcome') this.#startTask([readString(event.description)])
      else if (type === 'workflow_run.status_ended') this.#reportRunResult(event)
      else if (toolReplyTypes.has(type)) this.#applyReply(event)
    }
    while (!this.#isWaiting && this.#state.runs.length === 0 && this.#state.rounds.length > 0)
      this.#startRound()
    const [main] = this.#state.threads
    const isDone = !isWaiting(main)
    if (isDone && this.#isWaiting) return
    if (isDone && this.#state.runs.length === 0) {
      if (this.#state.finalMessage !== undefined) this.#sendMessage(this.#state.finalMessage)
      this.#state.finalMessage = undefined
    }
    const reason = isDone
      ? { type: 'end_turn' }
      : { type: 'requires_action', event_ids: main.unansweredToolUseIds }
    const stop = isDone && this.#isOverBudget ? { type: 'budget_reached' } : reason
    const { budget } = this.#state.clientFields as { budget?: object }
    this.#emit('session.usage', { usage: this.#usage, ...(budget ? { budget } : {}) })
    this.#emit('session.status_idle', { stop_reason: stop })
    this.#state.isRunning = false
  }

  get #isWaiting(): boolean {
    return this.#state.threads.some(isWaiting)
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
      const { type, fields, isInThread, plan } = step
      if (type === 'agent.message') {
        this.#addGenerated(type, fields)
        this.#state.finalMessage = undefined
        continue
      }
      this.#state.finalMessage ??= doneText
      if (plan) this.#startRun(plan)
      else if (isInThread) this.#startThread(step)
      else if (type === 'session.error') this.#emit(type, fields)
      else this.#startToolUse(step, this.#state.threads[0])
    }
  }

  #startToolUse({ type, fields }: TaskStep, { id, unansweredToolUseIds }: Thread): void {
    const event = this.#addGenerated(type, { ...fields, session_thread_id: id })
    const { evaluated_permission: permission } = fields
    if (permission === 'allow') this.#emit(...createResult(event))
    else if (permission === 'deny') this.#emit(...createResult(event, 'the service refused this tool use'))
    else unansweredToolUseIds.push(event.id ?? '')
  }

  #startThread(step: TaskStep): void {
    const thread = { id: createRandomId('sthr'), unansweredToolUseIds: [] }
    this.#state.threads.push(thread)
    this.#addThreadEvent('session.thread_created', thread, { workflow_run_id: null })
    this.#addThreadEvent('session.thread_status_running', thread)
    this.#startToolUse(step, thread)
    const reason = { type: 'requires_action', event_ids: thread.unansweredToolUseIds }
    this.#addThreadEvent('session.thread_status_idle', thread, { stop_reason: reason })
  }

  #addThreadEvent(type: string, { id }: Thread, fields: object = {}): void {
    if (id !== undefined) this.#emit(type, { session_thread_id: id, agent_name: 'helper', ...fields })
  }

  #startRun({ name, phases, result }: WorkflowRunPlan): void {
    const id = createRandomId('wrun')
    const all = phases.map((phase) => ({ id: createRandomId('wrph'), name: phase, description: null }))
    this.#emit('workflow_run.created', { workflow_run_id: id, name, description: null, phases: all })
    this.#emit('workflow_run.status_running', { workflow_run_id: id })
    const events: SessionEvent[] = all.flatMap((phase) => [
      { type: 'workflow_run.phase_started', workflow_run_phase_id: phase.id },
      { type: 'workflow_run.phase_ended', workflow_run_phase_id: phase.id },
    ])
    const error =
      result === 'error' ? { type: 'program_error', message: `the plan of ${name} failed` } : undefined
    if (error) events.push({ type: 'workflow_run.error', error })
    events.push({ type: 'workflow_run.status_ended', result: { type: result, error } })
    this.#state.runs.push({ id, name, events })
    this.#sendMessage(`The emulated agent started the workflow run ${name}.`)
  }

  #continueRun(id: string): void {
    const run = this.#state.runs.find((each) => each.id === id)
    const event = run?.events.shift()
    if (!run || !event) return
    const published = this.#emit(event.type, { ...event, workflow_run_id: id })
    if (run.events.length > 0) {
      this.#schedule(() => this.#continueRun(id))
      return
    }
    this.#state.runs = this.#state.runs.filter((each) => each !== run)
    this.#state.inbox.push({ ...published, name: run.name })
    this.#schedule(() => this.#react())
  }

  #reportRunResult({ name, result }: SessionEvent): void {
    const { type } = result as { type: string }
    this.#sendMessage(`The emulated agent read the result of the workflow run ${name}: ${type}.`)
  }

  #applyReply(event: SessionEvent): void {
    this.#state.finalMessage ??= doneText
    const use = this.#findToolUse(readString(event[toolReplyTypes.get(event.type)?.field ?? '']))
    if (!use) return
    const { session_thread_id: id } = use
    const thread = this.#state.threads.find((each) => each.id === id) ?? this.#state.threads[0]
    this.#addThreadEvent('session.thread_status_running', thread)
    if (event.type !== 'user.tool_confirmation')
      this.#sendMessage(describeResult(use, event), { session_thread_id: id })
    else if (event.result === 'allow') this.#emit(...createResult(use))
    else this.#sendMessage(describeDenial(use, readString(event.deny_message)), { session_thread_id: id })
    this.#addThreadEvent('session.thread_status_idle', thread, { stop_reason: { type: 'end_turn' } })
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

  #sendMessage(text: string, fields: object = {}): void {
    this.#addGenerated('agent.message', { content: [{ type: 'text', text }], ...fields })
  }

  #addGenerated(type: string, fields: object): SessionEvent {
    this.#state.tokens.output += estimateTokens(JSON.stringify(fields))
    return this.#emit(type, fields)
  }
}

/**
 * Returns the type and the fields of the event with the result of a tool use. `refusal` is the reason for
 * which the service did not run the tool.
 */
function createResult(use: SessionEvent, refusal?: string): [string, object] {
  const { id, type, session_thread_id } = use
  const content = [{ type: 'text', text: refusal ?? 'emulated output' }]
  const fields = { content, is_error: refusal === undefined ? undefined : true, session_thread_id }
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, ...fields }]
    : ['agent.tool_result', { tool_use_id: id, ...fields }]
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
