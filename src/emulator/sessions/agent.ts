import { formatPath } from '../../wire/json/parse.ts'
import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { countTokens, shorten } from '../gateway.ts'
import { type EmulatedResponse, errorResponse, newId } from '../response.ts'
import { createSampleForTexts } from '../sample.ts'
import { type ClientEvent, Session } from './session.ts'
import { type RunPlan, readTask, type TaskStep } from './task.ts'

/** The storage contains the state as JSON. */
interface AgentState {
  /** Events of clients and of the service to which the agent has not reacted yet. */
  inbox: SessionEvent[]
  /** Remaining steps of the task, in rounds. The agent executes the steps of a round together. */
  rounds: TaskStep[][]
  /** Ids of the main thread's tool uses without a reply. */
  waiting: string[]
  threads: Thread[]
  runs: WorkflowRun[]
  isRunning: boolean
  /** Text of the agent's message after the last step of the task. */
  finalMessage?: string | undefined
  usage: { input: number; output: number }
}

interface Thread {
  id: string
  name: string
  run: string | null
  waiting: string[]
  isEnded: boolean
}

interface WorkflowRun {
  id: string
  name: string
  steps: RunStep[]
}

/** An event of a workflow run, or a tool use. The run continues only after the reply to the tool use. */
type RunStep = { event: [type: string, fields?: object] } | { use: TaskStep }

export interface StoredSession {
  id: string
  created: string
  /** Time of the last change in ISO 8601, which sorts by time. */
  updated: string
  /** Fields of the session resource that clients have set. */
  fields: object
  /** JSON of each event. */
  events: string[]
  agent: AgentState
}

/**
 * For each type of reply: the field with the id of the tool use, and the types of tool uses that it answers.
 */
export const replies = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

const doneText = 'The emulated agent is done.'

/**
 * A session with an emulated agent. It accepts the events of a request, then the agent reacts to them
 * together.
 */
export class AgentSession extends Session {
  #stored: Omit<StoredSession, 'id' | 'events'>
  readonly #toolUses = new Map<string, SessionEvent>()
  readonly #schedule: (act: () => void) => void
  readonly #laterSteps: (() => void)[] = []

  /** `schedule` calls the agent's reactions and later steps, possibly after a delay. */
  constructor(id: string, schedule: (act: () => void) => void) {
    super(id)
    const created = new Date().toISOString()
    const agent = {
      inbox: [],
      rounds: [],
      waiting: [],
      threads: [],
      runs: [],
      isRunning: false,
      usage: { input: 0, output: 0 },
    }
    this.#stored = { created, updated: created, fields: {}, agent }
    this.#schedule = schedule
  }

  override accept(parameters: readonly ClientEvent[], fields?: object): EmulatedResponse | undefined {
    const refusal = this.#checkEvents(parameters)
    if (refusal) return refusal
    const wasOverBudget = this.#isOverBudget
    // Uses spread syntax, because assigning a client's field `__proto__` would set the prototype.
    this.#stored.fields = { ...this.#stored.fields, ...fields }
    this.#stored.updated = new Date().toISOString()
    for (const parameter of parameters) {
      const isOutcome = parameter.type === 'user.define_outcome'
      const outcome = isOutcome ? { outcome_id: newId('outc') } : {}
      this.#acceptEvent(this.#emit(parameter.type, { ...parameter, ...outcome }))
    }
    if (this.#isBusy) this.#schedule(() => this.#react())
    else if (wasOverBudget && !this.#isOverBudget) this.#schedule(() => this.#reactAndStop([]))
    return undefined
  }

  override describe() {
    const { fields, created, updated } = this.#stored
    return {
      budget: null,
      ...fields,
      // These fields come last, so that a client's fields do not replace them.
      id: this.id,
      type: 'session',
      status: this.#isBusy || this.#stored.agent.isRunning ? 'running' : 'idle',
      created_at: created,
      updated_at: updated,
      usage: this.#usage,
    }
  }

  toStored(): StoredSession {
    return { ...this.#stored, id: this.id, events: this.events.map(({ text }) => text) }
  }

  load({ id: _, events, ...stored }: StoredSession): void {
    this.#stored = stored
    for (const text of events.slice(this.events.length)) this.#addEvent(JSON.parse(text), text)
  }

  get #isBusy(): boolean {
    return this.#stored.agent.inbox.length > 0
  }

  #emit(type: string, fields: object = {}): SessionEvent {
    const id = newId(type.endsWith('tool_use') ? 'toolu' : 'sevt')
    const own = { id, type, processed_at: new Date().toISOString() }
    // The first spread puts these fields at the start of the JSON. The last spread keeps a client's fields
    // from replacing them.
    return this.#addEvent({ ...own, ...fields, ...own })
  }

  #addEvent(event: SessionEvent, text = JSON.stringify(event)): SessionEvent {
    if (event.type.endsWith('tool_use')) this.#toolUses.set(event.id ?? '', event)
    this.publish({ id: event.id, type: event.type, text })
    return event
  }

  /**
   * Checks events against the session's state. Returns an error response for a reply of the wrong type, a
   * second reply, a reply to a tool use of an ended thread, and a message while the session waits. Accepts a
   * reply to an unknown tool use.
   */
  #checkEvents(parameters: readonly ClientEvent[]): EmulatedResponse | undefined {
    const answered = new Set<string>()
    let isInterrupted = false
    for (const [index, event] of (parameters as (ClientEvent & Record<string, unknown>)[]).entries()) {
      const refusal = this.#checkEvent(event, index, answered, isInterrupted)
      if (refusal) return refusal
      isInterrupted ||= event.type === 'user.interrupt' && readString(event.session_thread_id) === ''
    }
    return undefined
  }

  #checkEvent(
    event: ClientEvent & Record<string, unknown>,
    index: number,
    answered: Set<string>,
    isInterrupted: boolean,
  ): EmulatedResponse | undefined {
    const { waiting } = this.#stored.agent
    if (event.type === 'user.message') {
      const open = isInterrupted ? [] : waiting.filter((id) => !answered.has(id))
      const place = formatPath(['events', index])
      if (open.length > 0)
        return errorResponse(400, `${place}: the session waits for an answer to ${open.join(', ')}`)
      if (this.#isOverBudget) return errorResponse(400, `${place}: the session is over its budget`)
    }
    const reply = replies.get(event.type)
    const id = reply && readString(event[reply.field])
    const use = id === undefined ? undefined : this.#toolUses.get(id)
    if (!reply || !use || id === undefined) return undefined
    const place = formatPath(['events', index, reply.field])
    if (!reply.uses.includes(use.type))
      return errorResponse(400, `${place}: is an ${use.type}, not ${reply.uses.join(' or ')}`)
    if (use.evaluated_permission === 'deny')
      return errorResponse(400, `${place}: the service refused it, so it does not wait for a reply`)
    const thread = this.#findThread(use)
    if (thread?.isEnded) {
      if (event.type === 'user.tool_confirmation') return undefined
      return errorResponse(400, `${place}: its thread ${thread.id} has ended`)
    }
    if (answered.has(id) || !(thread?.waiting ?? waiting).includes(id))
      return errorResponse(409, `${place}: does not wait for a reply: it was answered or interrupted`)
    answered.add(id)
    return undefined
  }

  #findThread({ session_thread_id: id }: SessionEvent): Thread | undefined {
    return this.#stored.agent.threads.find((thread) => thread.id === id)
  }

  #acceptEvent(event: SessionEvent): void {
    const { agent } = this.#stored
    const reply = replies.get(event.type)
    if (reply) {
      const id = readString(event[reply.field])
      const thread = this.#findThread(this.#toolUses.get(id) ?? event)
      // A confirmation for an ended thread has no effect.
      if (thread?.isEnded) return
      agent.waiting = agent.waiting.filter((each) => each !== id)
      if (thread) thread.waiting = thread.waiting.filter((each) => each !== id)
    } else if (event.type === 'user.interrupt') {
      if (!this.#applyInterrupt(readString(event.session_thread_id))) return
    } else if (event.type !== 'user.message' && event.type !== 'user.define_outcome') return
    agent.inbox.push(event)
  }

  /**
   * Applies an interrupt of one thread or of all threads. Returns whether a thread was working or waiting.
   * Workflow runs continue, but no longer wait for the tool uses of interrupted threads.
   */
  #applyInterrupt(threadId: string): boolean {
    const { agent } = this.#stored
    const isAllThreads = threadId === ''
    const isWaiting = ({ id, waiting }: Thread) => (isAllThreads || id === threadId) && waiting.length > 0
    const threads = agent.threads.filter(isWaiting)
    const isIdle = !this.#isBusy && !agent.isRunning && agent.waiting.length === 0
    if (threads.length === 0 && (!isAllThreads || isIdle)) return false
    for (const thread of threads) {
      thread.waiting = []
      this.#laterSteps.push(() => this.#continueRun(thread.run))
    }
    if (isAllThreads) Object.assign(agent, { inbox: [], rounds: [], waiting: [], finalMessage: undefined })
    return true
  }

  #react(): void {
    const { agent } = this.#stored
    const events = agent.inbox
    if (events.length === 0) return
    agent.inbox = []
    const isOfRun = (event: SessionEvent) => {
      const use = this.#toolUses.get(readString(event[replies.get(event.type)?.field ?? '']))
      return use !== undefined && this.#findThread(use)?.run != null
    }
    // After a reply in a thread of a workflow run, only that thread continues, not the main thread.
    if (!events.every(isOfRun)) this.#reactAndStop(events)
    else for (const event of events) this.#applyReply(event)
    for (const step of this.#laterSteps.splice(0)) this.#schedule(step)
  }

  /** Stops the session, unless child threads wait for replies. */
  #reactAndStop(events: readonly SessionEvent[]): void {
    const { agent } = this.#stored
    if (!agent.isRunning && events.some(({ type }) => type !== 'user.interrupt'))
      this.#emit('session.status_running')
    agent.isRunning = true
    for (const event of events) {
      const { type } = event
      agent.usage.input += countTokens(JSON.stringify(event))
      if (type === 'user.message') this.#startTask(readTexts(event))
      else if (type === 'user.define_outcome') this.#startTask([readString(event.description)])
      else if (type === 'workflow_run.status_ended') this.#reportRunResult(event)
      else if (replies.has(type)) this.#applyReply(event)
    }
    while (!this.#isWaiting && agent.runs.length === 0 && agent.rounds.length > 0) this.#startRound()
    // If only child threads wait, the session is still running.
    if (agent.waiting.length === 0 && this.#isWaiting) return
    const isDone = agent.waiting.length === 0
    if (isDone && agent.runs.length === 0) {
      if (agent.finalMessage !== undefined) this.#sendMessage(agent.finalMessage)
      agent.finalMessage = undefined
    }
    const reason = isDone ? { type: 'end_turn' } : { type: 'requires_action', event_ids: agent.waiting }
    const stop = isDone && this.#isOverBudget ? { type: 'budget_reached' } : reason
    const { budget } = this.#stored.fields as { budget?: object }
    this.#emit('session.usage', { usage: this.#usage, ...(budget ? { budget } : {}) })
    this.#emit('session.status_idle', { stop_reason: stop })
    agent.isRunning = false
  }

  get #isWaiting(): boolean {
    const { waiting, threads } = this.#stored.agent
    return waiting.length > 0 || threads.some((thread) => thread.run === null && thread.waiting.length > 0)
  }

  #startTask(texts: string[]): void {
    const { agent } = this.#stored
    const rounds = readTask(texts)
    const sample = createSampleForTexts(texts)
    agent.finalMessage = sample ?? agent.finalMessage
    if (rounds.flat().some(({ type }) => type.endsWith('tool_use')))
      this.#sendMessage('The emulated agent wants to use a tool.')
    agent.rounds.push(...rounds)
    if (rounds.length > 0) this.#startRound()
    else if (sample === undefined)
      this.#sendMessage(`The emulated agent read “${shorten(texts.join(' '))}”, and has nothing to do.`)
  }

  #startRound(): void {
    const { agent } = this.#stored
    for (const step of agent.rounds.shift() ?? []) {
      const { type, fields, thread, plan } = step
      if (type === 'agent.message') {
        this.#addGenerated(type, fields)
        agent.finalMessage = undefined
        continue
      }
      agent.finalMessage ??= doneText
      if (plan) this.#startRun(plan)
      else if (thread) this.#startThread(step, null)
      else if (type === 'session.error') this.#emit(type, fields)
      else this.#startToolUse(step, agent)
    }
  }

  #startToolUse({ type, fields }: TaskStep, thread: { waiting: string[]; id?: string }): void {
    const event = this.#addGenerated(type, { ...fields, ...threadField(thread) })
    const { evaluated_permission: permission } = fields
    if (permission === 'allow') this.#emit(...createResult(event))
    else if (permission === 'deny') this.#emit(...createResult(event, 'the service refused this tool use'))
    else thread.waiting.push(event.id ?? '')
  }

  #startThread(step: TaskStep, run: string | null): void {
    const thread = { id: newId('sthr'), name: 'helper', run, waiting: [], isEnded: false }
    this.#stored.agent.threads.push(thread)
    this.#addThreadEvent('session.thread_created', thread, { workflow_run_id: run })
    this.#addThreadEvent('session.thread_status_running', thread)
    this.#startToolUse(step, thread)
    const reason = { type: 'requires_action', event_ids: thread.waiting }
    this.#addThreadEvent('session.thread_status_idle', thread, { stop_reason: reason })
    if (step.thread === 'ends') this.#laterSteps.push(() => this.#endThread(thread.id))
  }

  #addThreadEvent(type: string, { id, name }: Thread, fields: object = {}): void {
    this.#emit(type, { session_thread_id: id, agent_name: name, ...fields })
  }

  #endThread(id: string): void {
    const { agent } = this.#stored
    const thread = agent.threads.find((each) => each.id === id)
    // After a reply, the thread does not end.
    if (!thread || thread.waiting.length === 0) return
    Object.assign(thread, { waiting: [], isEnded: true })
    this.#addThreadEvent('session.thread_status_terminated', thread)
    this.#receiveServiceEvent({ type: 'session.thread_status_terminated' })
  }

  #receiveServiceEvent(event: SessionEvent): void {
    this.#stored.agent.inbox.push(event)
    this.#schedule(() => this.#react())
  }

  #startRun({ name, phases, use, result }: RunPlan): void {
    const id = newId('wrun')
    const all = phases.map((phase) => ({ id: newId('wrph'), name: phase, description: null }))
    this.#emit('workflow_run.created', { workflow_run_id: id, name, description: null, phases: all })
    this.#emit('workflow_run.status_running', { workflow_run_id: id })
    const steps = all.flatMap((phase, index): RunStep[] => [
      { event: ['workflow_run.phase_started', { workflow_run_phase_id: phase.id }] },
      ...(use && index === 0 ? [{ use }] : []),
      { event: ['workflow_run.phase_ended', { workflow_run_phase_id: phase.id }] },
    ])
    const error = { type: 'program_error', message: `the plan of ${name} failed` }
    const isError = result === 'error'
    if (isError) steps.push({ event: ['workflow_run.error', { error }] })
    const ending = { result: { type: result, ...(isError ? { error } : {}) } }
    steps.push({ event: ['workflow_run.status_ended', ending] })
    this.#stored.agent.runs.push({ id, name, steps })
    this.#sendMessage(`The emulated agent started the workflow run ${name}.`)
    this.#laterSteps.push(() => this.#continueRun(id))
  }

  /** Does nothing if `id` is `null`, because the thread then belongs to no workflow run. */
  #continueRun(id: string | null): void {
    const { agent } = this.#stored
    const run = agent.runs.find((each) => each.id === id)
    const step = run?.steps.shift()
    if (!run || !step) return
    if ('use' in step) {
      this.#startThread(step.use, run.id)
      return
    }
    const [type, fields] = step.event
    const event = this.#emit(type, { ...fields, workflow_run_id: run.id })
    if (run.steps.length > 0) {
      this.#schedule(() => this.#continueRun(id))
      return
    }
    agent.runs = agent.runs.filter((each) => each !== run)
    this.#receiveServiceEvent({ ...event, name: run.name })
  }

  #reportRunResult({ name, result }: SessionEvent): void {
    const { type } = result as { type: string }
    this.#sendMessage(`The emulated agent read the result of the workflow run ${name}: ${type}.`)
  }

  #applyReply(event: SessionEvent): void {
    const use = this.#toolUses.get(readString(event[replies.get(event.type)?.field ?? '']))
    const thread = use && this.#findThread(use)
    if (thread?.run == null) this.#stored.agent.finalMessage ??= doneText
    if (!use) return
    if (thread) this.#addThreadEvent('session.thread_status_running', thread)
    const fields = threadField(thread)
    if (event.type !== 'user.tool_confirmation') this.#sendMessage(describeResult(use, event), fields)
    else if (event.result === 'allow') this.#emit(...createResult(use))
    else this.#sendMessage(describeDenial(use, readString(event.deny_message)), fields)
    if (!thread) return
    this.#addThreadEvent('session.thread_status_idle', thread, { stop_reason: { type: 'end_turn' } })
    this.#laterSteps.push(() => this.#continueRun(thread.run))
  }

  get #isOverBudget(): boolean {
    const { budget } = this.#stored.fields as { budget?: { max_list_cost: { amount: string } } }
    return budget != null && this.#cost >= Number(budget.max_list_cost.amount)
  }

  /** Cost in cents. Tokens are so expensive that even a short task costs at least a cent. */
  get #cost(): number {
    const { input, output } = this.#stored.agent.usage
    return Math.ceil((input + 5 * output) / 20)
  }

  get #usage(): object {
    const { input, output } = this.#stored.agent.usage
    return {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      list_cost: { amount: String(this.#cost), currency: 'USD' },
    }
  }

  #sendMessage(text: string, fields: object = {}): void {
    this.#addGenerated('agent.message', { content: [{ type: 'text', text }], ...fields })
  }

  #addGenerated(type: string, fields: object): SessionEvent {
    this.#stored.agent.usage.output += countTokens(JSON.stringify(fields))
    return this.#emit(type, fields)
  }
}

const threadField = (thread: { id?: string } = {}): object =>
  thread.id === undefined ? {} : { session_thread_id: thread.id }

/** `refusal`: why the service did not execute the tool use. */
function createResult(use: SessionEvent, refusal?: string): [string, object] {
  const { id, type, session_thread_id: thread } = use
  const content = [{ type: 'text', text: refusal ?? 'emulated output' }]
  const fields = {
    content,
    ...(refusal === undefined ? {} : { is_error: true }),
    ...(typeof thread === 'string' ? { session_thread_id: thread } : {}),
  }
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, ...fields }]
    : ['agent.tool_result', { tool_use_id: id, ...fields }]
}

/** No schema checks the fields that this function reads. */
const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

const readTexts = ({ content }: SessionEvent): string[] =>
  Array.isArray(content) ? content.map((block) => readString(block?.text)) : []

function describeDenial({ name }: SessionEvent, reason: string): string {
  return `The emulated agent does without ${name}, which was denied${reason && `: “${shorten(reason)}”`}.`
}

function describeResult({ name }: SessionEvent, result: SessionEvent): string {
  const quoted = `“${shorten(readText(result))}”`
  return result.is_error === true
    ? `The emulated agent does without ${name}, which failed: ${quoted}.`
    : `The emulated agent read the result of ${name}: ${quoted}.`
}
