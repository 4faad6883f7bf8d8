import { createHash } from 'node:crypto'
import { isObject } from '../wire/json/parse.ts'
import {
  isDeeperThan,
  listChildren,
  listTokens,
  parseWithSourceTexts,
  skipBlanks,
} from '../wire/json/scanner.ts'
import {
  answerFields,
  getAnsweredId,
  isAnswerType,
  isOfMainThread,
  isToolUse,
  readError,
  readStopDetails,
  readStopReason,
  type SessionEvent,
  startsWork,
  stopsSession,
} from '../wire/sessions/session-event.ts'
import { type Money, readBudget, readUsage } from '../wire/sessions/usage.ts'
import { Background, type WorkflowRun } from './background.ts'

/** Reason and details of a session's stop. `why` is the last error message of the turn. */
type Stop =
  | { kind: 'done'; reason: string }
  /**
   * `ids`: the waiting tool uses that the idle event lists or, if it has no list, all unanswered tool uses.
   */
  | { kind: 'waiting'; ids: string[] }
  | {
      kind: 'stuck'
      reason: string
      category?: string
      why?: string
      budget?: Money | undefined
      cost?: Money | undefined
    }
  /** The session was terminated or deleted. */
  | { kind: 'ended'; reason: string; why?: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  /** Name of the MCP server, for an MCP tool. */
  server?: unknown
  input: unknown
  /** Id of the child thread, if the tool use is not in the main thread. */
  thread?: unknown
  /** The service's own decision (`evaluated_permission`). */
  permission?: unknown
  /** JSON source text of the whole event. */
  text?: string | undefined
  /** The tool use was allowed, and the service does not run it, so a client has to send its result. */
  wantsResult?: boolean
  /** The service sent two different inputs or names for this id, so an allow would be ambiguous. */
  isContradicted?: boolean | undefined
  /** The tool use needs no more decisions. Its input and text are dropped, because they may be long. */
  isClosed?: boolean
}

const modelRequest = 'model request'

/**
 * Returns whether a client has to run the tool and send its result. Such a tool use needs no confirmation.
 */
export const needsResult = ({ type, permission }: Partial<ToolUse> = {}): boolean =>
  type === 'agent.custom_tool_use' || (type === 'agent.tool_use' && permission === 'allow')

/** The answer to a tool use: a confirmation or a result. */
interface Answer {
  /** A client sent the answer, not the service. */
  isReply: boolean
  /** The session's list or stream contained the answer. */
  isShown: boolean
  /** Decision of the last confirmation. */
  decision: unknown
  /** The last answer is a result. */
  isResult: boolean
}

/** The part of a session's state that depends on the order of the events. */
class OrderedState {
  /** Answers by tool use id. */
  readonly answers = new Map<string, Answer>()
  /** Tool uses that the last idle event lists and a client has interrupted since. */
  readonly interrupted = new Set<string>()
  /** Tool uses of this turn that may need an answer. */
  readonly open = new Set<string>()
  /**
   * The permissions that tool uses had before a client allowed them, by id. These tool uses now wait for a
   * result.
   */
  readonly forResult = new Map<string, unknown>()
  readonly background = new Background()
  /** The last client event that had an effect interrupted the whole session. */
  isHalted = false
  isEmpty = true
  /**
   * `idle by resource`: the session resource reports idle, but no event does. `stalled`: no event has arrived
   * for a long time, and no work is known to be in progress. The next event ends both.
   */
  status: 'working' | 'idle' | 'idle by resource' | 'stalled' = 'working'
  /** Work in progress in the main thread: `modelRequest`, and the ids of tool uses that the service runs. */
  readonly working = new Set<string>()
  showsIdleEvents = false
  idle: ReturnType<typeof readStopReason> | undefined
  /** Ids of the tool uses that the idle event `idle` lists. */
  listed: ReadonlySet<string> = new Set()
  /** Ids in `listed` of the tool uses whose answer is not known yet. */
  readonly left = new Set<string>()
  details: ReturnType<typeof readStopDetails> = {}
  /** The session's own cost limit, as last reported. */
  budget: Money | undefined
  /** The session's cost, as last reported. */
  cost: Money | undefined
  end: string | undefined
  error: string | undefined
  /** The service has given up after the last error, and no later event shows that it works again. */
  hasFinalError = false
  /** Set if the last evaluation found that this turn did not reach its outcome. */
  missed: Stop | undefined
  stoppedAt: string | undefined
  lastStop: string | undefined

  get isIdle(): boolean {
    return this.status === 'idle' || this.status === 'idle by resource'
  }
}

/**
 * Computes the state of a session from its events in order. Only the descriptions of tool uses do not depend
 * on the order; `restart` keeps them.
 */
export class SessionState {
  readonly #toolUses = new Map<string, ToolUse>()
  #ordered = new OrderedState()
  /** Ids of all stop events, in order. */
  readonly stops = new Set<string>()
  /** parley is replying to the waiting tool uses, so waiting for them does not count as a stop. */
  #isAttended = false

  /**
   * Adds the newest event. `text` is its source text. Returns false for an answer that the session did not
   * wait for.
   */
  add(event: SessionEvent, text?: string): boolean {
    if (isToolUse(event)) this.addToolUse(event, text)
    return this.addReduced(event)
  }

  /** Adds the description of a tool use, because `addReduced` gets only its id. */
  addToolUse(event: SessionEvent, text: string | undefined): void {
    const { id } = event
    // Nobody could reply to a tool use without an id, so it is ignored.
    if (id === undefined) return
    this.addAgain(event, text)
    const earlier = this.#toolUses.get(id)
    if (earlier?.isClosed) return
    const use = readToolUse(event, text)
    use.isContradicted = earlier?.isContradicted
    this.#toolUses.set(id, use)
  }

  /** Drops everything that depends on the order of the events. The caller adds all events again. */
  restart(): void {
    for (const [id, permission] of this.#ordered.forResult) this.#setForResult(id, permission, false)
    this.#ordered = new OrderedState()
    this.stops.clear()
  }

  /**
   * Adds the newest event. If the event is a tool use, `addToolUse` was called before. `isAssumed` is true if
   * the service accepted the event but has not listed or streamed it yet. Returns false for an answer that
   * the session did not wait for.
   */
  addReduced(event: SessionEvent, isAssumed = false): boolean {
    const { type } = event
    const ordered = this.#ordered
    ordered.isEmpty = false
    if (ordered.status !== 'idle') ordered.status = 'working'
    this.#addWork(event)
    if (isToolUse(event)) this.#open(event)
    const hasEffect = !isAnswerType(type) || this.#addAnswer(event, !isAssumed)
    const isForThread = hasEffect && this.#answerThread(getAnsweredId(event))
    // A new turn does not wait for the tool uses of the previous turn.
    if (type === 'user.message' || type === 'user.interrupt')
      for (const id of ordered.open) if (this.#isAbout(event, id)) ordered.open.delete(id)
    if (type === 'user.interrupt') {
      for (const id of this.pending.filter((each) => this.#isAbout(event, each))) {
        ordered.interrupted.add(id)
        ordered.left.delete(id)
      }
      for (const id of ordered.background.interrupt(event)) ordered.interrupted.add(id)
    }
    if (type === 'user.interrupt' ? isOfMainThread(event) : type.startsWith('user.') && hasEffect)
      ordered.isHalted = type === 'user.interrupt'
    ordered.background.add(event)
    if (type === 'session.thread_status_idle') this.#waitForResults(readStopReason(event).eventIds)
    if (type === 'user.message' || type === 'user.define_outcome') {
      ordered.error = undefined
      ordered.missed = undefined
    }
    if (type === 'span.outcome_evaluation_end') ordered.missed = readMissedOutcome(event)
    if (type === 'session.error') {
      const { message, server, isFinal } = readError(event.error)
      ordered.error = message
      ordered.hasFinalError = isFinal && server === undefined
    } else if (/^(agent|user|session\.status_)/.test(type)) ordered.hasFinalError = false
    if (type === 'session.usage') {
      ordered.budget = readBudget(event.budget)
      ordered.cost = readUsage(event.usage)?.cost
    }
    if (stopsSession(event)) {
      this.#addStop(event)
      ordered.showsIdleEvents ||= this.stop?.kind === 'done' || ordered.idle?.type === 'end_turn'
    } else if (startsWork(event) && hasEffect && !isForThread && !(isAnswerType(type) && this.#stillWaits))
      ordered.status = 'working'
    return hasEffect
  }

  /** Compares a repeated event with the first event of its id. Returns whether their tool uses differ. */
  addAgain(event: SessionEvent, text?: string): boolean {
    const use = this.#toolUses.get(event.id ?? '')
    if (!use || use.isContradicted || isSame(use, readToolUse(event, text))) return false
    use.isContradicted = true
    return true
  }

  /** Records that the session resource reports a stop that no event shows. Applies until the next event. */
  addIdleResource(isTerminated = false): void {
    const stop_reason = this.#ordered.hasFinalError ? { type: 'retries_exhausted' } : undefined
    this.#addStop({ type: isTerminated ? 'session.status_terminated' : 'session.status_idle', stop_reason })
    this.#ordered.status = 'idle by resource'
  }

  /**
   * Records a long silence. A running session then counts as stopped if tool uses of its child threads wait
   * and no work is known to be in progress. Applies until the next event.
   */
  addSilence(): void {
    const { background, status, working } = this.#ordered
    const isStalled = status === 'working' && working.size === 0 && !background.hasWorkingThread
    if (isStalled) this.#ordered.status = 'stalled'
  }

  /** No event was added. */
  get isEmpty(): boolean {
    return this.#ordered.isEmpty
  }

  /** Only the session resource reports the stop, although this service usually sends an idle event. */
  get lacksIdleEvent(): boolean {
    return this.#ordered.status === 'idle by resource' && this.#ordered.showsIdleEvents
  }

  /** The session has stopped, with or without waiting tool uses. */
  get isIdle(): boolean {
    return this.#ordered.isIdle
  }

  /** The service has sent an idle event at the end of a turn, so parley expects one for each turn. */
  get showsIdleEvents(): boolean {
    return this.#ordered.showsIdleEvents
  }

  /** The session may have stopped after an error, without a stop event. */
  get hasFinalError(): boolean {
    return this.#ordered.hasFinalError
  }

  /** Time of the last stop, if the service reported one. */
  get stoppedAt(): string | undefined {
    return this.#ordered.stoppedAt
  }

  /** The id of the last stop event. */
  get lastStop(): string | undefined {
    return this.#ordered.lastStop
  }

  /** Reason of the current stop; `undefined` while the agent works or has unprocessed input. */
  get stop(): Stop | undefined {
    const { isIdle, end, error, idle, interrupted, missed, budget, cost, details } = this.#ordered
    if (!isIdle) return this.#stall
    if (end !== undefined) return { kind: 'ended', reason: end, why: error }
    const { type, eventIds } = idle ?? {}
    const ids = [...new Set([...this.unlisted, ...this.pending])]
    // The specification's example has `event_ids` and no type, so listed tool uses count as waiting for any
    // type.
    if (!isStuck(type) && ids.length > 0)
      return this.#isAttended || this.#hasOtherWork(type) ? undefined : { kind: 'waiting', ids }
    if (type === 'requires_action' && eventIds?.some((id) => interrupted.has(id)))
      return { kind: 'done', reason: 'interrupted' }
    // All tool uses of the idle event are answered, so the agent continues.
    if (type === 'requires_action' && eventIds?.length) return undefined
    if (this.#continuesWithoutInput(type)) return undefined
    if (type === undefined || type === 'end_turn')
      return missed ?? { kind: 'done', reason: type ?? 'no reason given' }
    if (type === 'budget_reached') return { kind: 'stuck', reason: type, budget, cost }
    const { category, explanation } = details
    return { kind: 'stuck', reason: type, category, why: explanation ?? error }
  }

  /** The stop of a running session that only waits for tool uses of child threads. */
  get #stall(): Stop | undefined {
    const isStalled = this.#ordered.status === 'stalled' && !this.#isAttended
    const ids = isStalled ? [...new Set([...this.pendingInThreads, ...this.unlisted])] : []
    return ids.length > 0 ? { kind: 'waiting', ids } : undefined
  }

  /** The workflow runs that have not ended. */
  get openRuns(): WorkflowRun[] {
    return this.#ordered.background.openRuns
  }

  /** The session is idle, but its turn continues: the agent will answer when its workflow runs have ended. */
  get isBetweenRuns(): boolean {
    const { isIdle, end, idle } = this.#ordered
    return isIdle && end === undefined && this.#continuesWithoutInput(idle?.type)
  }

  /** The service's own name for the reason of the stop. */
  get stopReason(): string | undefined {
    const { isIdle, end, idle } = this.#ordered
    return isIdle ? (end ?? idle?.type) : undefined
  }

  /**
   * Unanswered tool uses that the last `session.status_idle`, or the last idle event of a child thread,
   * lists. parley answers only these tool uses.
   */
  get pending(): string[] {
    const { left, background } = this.#ordered
    return [...new Set([...left, ...background.waiting])].filter(
      (id) => this.#findAnsweredReason(id) === undefined,
    )
  }

  /** Pending tool uses that only child threads list. They wait even while the main thread works. */
  get pendingInThreads(): string[] {
    const { listed, background } = this.#ordered
    return [...background.waiting].filter(
      (id) => !listed.has(id) && this.#findAnsweredReason(id) === undefined,
    )
  }

  /**
   * The pending tool uses that can be answered now: all if the session is idle, otherwise only tool uses of
   * child threads.
   */
  get asked(): string[] {
    const { isIdle, end, idle } = this.#ordered
    if (!isIdle) return this.pendingInThreads
    return end !== undefined || isStuck(idle?.type) ? [] : this.pending
  }

  /** Returns why a tool use needs no reply any more, or `undefined` while the session waits for the reply. */
  findClosedReason(id: string): string | undefined {
    const { end } = this.#ordered
    if (end !== undefined) return `the session is ${end}`
    const why = this.#findAnsweredReason(id)
    if (why !== undefined || this.#isListed(id)) return why
    return 'the session does not wait for it any more'
  }

  /**
   * Sets whether parley is replying to the waiting tool uses. If so, waiting for them does not count as a
   * stop.
   */
  setAttended(isAttended: boolean): void {
    this.#isAttended = isAttended
  }

  /**
   * Unanswered tool uses, if the session stopped and did not list the tool uses that wait. Each of them may
   * be waiting.
   */
  get unlisted(): string[] {
    return [...this.#ordered.open].filter((id) => this.#isUnlisted(id))
  }

  #isUnlisted(id: string): boolean {
    const { idle, open, status, background } = this.#ordered
    if (!open.has(id)) return false
    if (idle !== undefined && !idle.eventIds && isWaiting(idle.type)) return !this.#hasThreadEnded(id)
    return status === 'stalled' && background.waitsWithoutList(this.#toolUses.get(id)?.thread)
  }

  getToolUse(id: string): ToolUse | undefined {
    return this.#toolUses.get(id)
  }

  /** Returns the tool use that an event answers, if the tool use is known. */
  findAnsweredToolUse(event: SessionEvent): ToolUse | undefined {
    const id = getAnsweredId(event)
    return id === undefined ? undefined : this.getToolUse(id)
  }

  getAnswer(id: string): Readonly<Answer> | undefined {
    return this.#ordered.answers.get(id)
  }

  /** Updates the work in progress of the main thread. */
  #addWork(event: SessionEvent): void {
    const { type, id } = event
    const { working } = this.#ordered
    if (!isOfMainThread(event)) return
    if (stopsSession(event)) working.clear()
    if (type === 'span.model_request_start') working.add(modelRequest)
    if (type === 'span.model_request_end') working.delete(modelRequest)
    if (id !== undefined && isToolUse(event) && event.evaluated_permission === 'allow') working.add(id)
    const answered = isAnswerType(type) ? getAnsweredId(event) : undefined
    if (answered === undefined) return
    if (
      event.result === 'allow' &&
      isOfMainThread({ type, session_thread_id: this.#toolUses.get(answered)?.thread })
    )
      working.add(answered)
    else working.delete(answered)
  }

  /** Returns whether an event concerns a tool use. An event of a child thread concerns only that thread. */
  #isAbout(event: SessionEvent, id: string): boolean {
    return isOfMainThread(event) || this.#toolUses.get(id)?.thread === event.session_thread_id
  }

  #findAnsweredReason(id: string): string | undefined {
    const answer = this.#ordered.answers.get(id)
    if (answer?.decision !== undefined) return `it is answered: ${answer.decision}`
    if (answer) return 'it has a result'
    if (this.#hasThreadEnded(id)) return 'its thread has ended'
    return this.#ordered.interrupted.has(id) ? 'it was interrupted' : undefined
  }

  /**
   * Adds an answer to a tool use of a child thread. Returns whether the main thread stays idle: the thread
   * belongs to a workflow run, or the main thread still waits for another answer.
   */
  #answerThread(id = ''): boolean {
    const { background, listed } = this.#ordered
    const thread = background.answer(id)
    if (!thread || listed.has(id)) return false
    return thread.run !== undefined || this.#hasListedLeft
  }

  #hasThreadEnded(id: string): boolean {
    return this.#ordered.background.hasEnded(id, this.#toolUses.get(id)?.thread)
  }

  /** Returns whether other work of the session can continue while tool uses wait. */
  #hasOtherWork(reason: string | undefined): boolean {
    const { background, isHalted } = this.#ordered
    return background.canContinue || (background.hasUnreadResult && reason !== 'requires_action' && !isHalted)
  }

  /**
   * Returns whether the agent continues without input. Returns false after an interrupt, because the workflow
   * runs may then never end.
   */
  #continuesWithoutInput(reason: string | undefined): boolean {
    const { background, isHalted } = this.#ordered
    const isPaused = reason === undefined || reason === 'end_turn' || reason === 'retries_exhausted'
    return isPaused && background.willContinue && !isHalted
  }

  /**
   * If an idle event lists only answered tool uses, the session waits for the results of the allowed ones.
   */
  #waitForResults(listed: readonly string[] = []): void {
    // Some services list answered tool uses together with waiting ones. These need no result.
    if (!listed.every((id) => this.#ordered.answers.has(id))) return
    for (const id of listed) this.#waitForResult(id)
  }

  /** Records that a client has to send the result of an allowed tool use, unless the result is known. */
  #waitForResult(id: string): void {
    const { answers, forResult, listed, left } = this.#ordered
    const { isShown, decision, isResult } = answers.get(id) ?? {}
    const use = this.#toolUses.get(id)
    if (use?.type !== 'agent.tool_use' || !isShown || isResult || decision !== 'allow') return
    answers.delete(id)
    if (listed.has(id)) left.add(id)
    if (!forResult.has(id)) forResult.set(id, use.permission)
    this.#setForResult(id, 'allow', true)
  }

  #setForResult(id: string, permission: unknown, wantsResult: boolean): void {
    const use = this.#toolUses.get(id)
    if (use) Object.assign(use, { permission, wantsResult })
  }

  #open({ id, evaluated_permission: permission }: SessionEvent): void {
    const { answers, open } = this.#ordered
    if (id !== undefined && permission !== 'allow' && permission !== 'deny' && !answers.has(id)) open.add(id)
  }

  /**
   * Adds an answer. Returns whether the answer has an effect: it is the first answer to a tool use for which
   * the session waits, or the tool use is not known.
   */
  #addAnswer(event: SessionEvent, isShown: boolean): boolean {
    const { answers, forResult, open } = this.#ordered
    const isResult = event.type !== 'user.tool_confirmation'
    const named = answerFields.map((field) => event[field]).filter((id) => typeof id === 'string')
    const hasEffect = named.length === 0 || named.some((id) => this.#isWaitedFor(id))
    for (const id of named) {
      // This confirmation was sent before the session began to wait for the result, so it is not the answer.
      if (!isResult && forResult.has(id)) continue
      const earlier = answers.get(id)
      const isReply = event.type.startsWith('user.') || earlier?.isReply === true
      const decision = isResult ? earlier?.decision : event.result
      answers.set(id, { isReply, isShown: isShown || earlier?.isShown === true, isResult, decision })
      open.delete(id)
      const use = this.#toolUses.get(id)
      // Keeps the input of an allowed tool use, because a client may have to run the tool later.
      if (use && (isResult || !(decision === 'allow' && use.type === 'agent.tool_use'))) close(use)
    }
    return hasEffect
  }

  #isListed(id: string): boolean {
    const { listed, background } = this.#ordered
    return background.isWaitingFor(id) || listed.has(id)
  }

  /**
   * A tool use of the last idle event still waits. Some services send no new idle event when a client has
   * answered only some of the listed tool uses.
   */
  get #stillWaits(): boolean {
    return !isStuck(this.#ordered.idle?.type) && this.#hasListedLeft
  }

  /**
   * A tool use of the last idle event has no answer. Drops answered ones from `left`, so that answering a
   * long list takes linear time.
   */
  get #hasListedLeft(): boolean {
    const { left } = this.#ordered
    for (const id of left) {
      if (this.#findAnsweredReason(id) === undefined) return true
      left.delete(id)
    }
    return false
  }

  #isWaitedFor(id: string): boolean {
    const { answers, isIdle } = this.#ordered
    if (answers.has(id) || this.#hasThreadEnded(id)) return false
    if (!isIdle || !this.#toolUses.has(id)) return true
    return (this.#isListed(id) && this.#findAnsweredReason(id) === undefined) || this.#isUnlisted(id)
  }

  #addStop(event: SessionEvent): void {
    const ordered = this.#ordered
    ordered.status = 'idle'
    ordered.stoppedAt = event.processed_at ?? undefined
    ordered.lastStop = event.id
    if (event.id !== undefined) this.stops.add(event.id)
    const isIdle = event.type === 'session.status_idle'
    ordered.end = isIdle ? undefined : event.type.replace(/^session\.(status_)?/, '')
    if (!isIdle) return
    ordered.idle = readStopReason(event)
    ordered.listed = new Set(ordered.idle.eventIds)
    ordered.left.clear()
    for (const id of ordered.listed) ordered.left.add(id)
    ordered.details = readStopDetails(event)
    ordered.interrupted.clear()
    ordered.background.addIdle()
    this.#waitForResults(ordered.idle.eventIds)
    if (!isWaiting(ordered.idle.type)) ordered.open.clear()
  }
}

function readMissedOutcome({ result, explanation }: SessionEvent): Stop | undefined {
  if (result !== 'failed' && result !== 'max_iterations_reached') return undefined
  const why = typeof explanation === 'string' ? explanation : undefined
  return { kind: 'stuck', reason: 'the outcome was not reached', category: result, why }
}

function readToolUse(event: SessionEvent, text = JSON.stringify(event)): ToolUse {
  const { id = '', type, name, input } = event
  return {
    id,
    type,
    name: typeof name === 'string' ? name : '',
    server: event.mcp_server_name,
    input,
    thread: event.session_thread_id,
    permission: event.evaluated_permission,
    text,
    wantsResult: false,
    isContradicted: undefined,
    isClosed: false,
  }
}

function close(use: ToolUse): void {
  use.text = undefined
  use.input = undefined
  use.isClosed = true
}

/**
 * Returns whether two events with the same id have the same tool use. Closed tool uses have no content to
 * compare, so they count as the same.
 */
const isSame = (one: ToolUse, other: ToolUse): boolean =>
  one.isClosed === true ||
  one.text === other.text ||
  getToolUseFingerprint(one, one.text) === getToolUseFingerprint(other, other.text)

/** Maximum nesting depth of an input. The event around it has one more level. */
export const maxInputDepth = 100

/**
 * Returns a hash of a tool use. The order of the input's keys does not change the hash; duplicate keys and
 * the source text of numbers do. `text` is the JSON text of an object with the field `input`.
 */
export function getToolUseFingerprint(
  { type, server, name }: { [Field in 'type' | 'server' | 'name']?: unknown },
  text = '{}',
): string {
  const children = [...listChildren(text, skipBlanks(text, 0))]
  const given = children
    .filter((child) => child.name === 'input')
    .map(({ start, end }) => text.slice(start, end))
  const inputs = (given.length > 0 ? given : ['{}']).map((input) =>
    isDeeperThan(input, maxInputDepth) ? input : [parseWithSourceTexts(input), [...listTokens(input)].sort()],
  )
  const whole = JSON.stringify([type, server ?? null, name, inputs], (_, value) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
  return createHash('sha256').update(whole).digest('base64')
}

/** Returns whether a session that is idle for this reason may wait for replies. */
const isWaiting = (reason: string | undefined) => reason === undefined || reason === 'requires_action'

/** Returns whether replies cannot continue a session that is idle for this reason. */
const isStuck = (reason: string | undefined) =>
  reason === 'retries_exhausted' || reason === 'budget_reached' || reason === 'refusal'
