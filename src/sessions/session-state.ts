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
import { type Money, readBudget } from '../wire/sessions/usage.ts'
import { Background, type WorkflowRun } from './background.ts'

/** The stop of a session. `why` is the last error of its turn. */
type Stop =
  | { kind: 'done'; reason: string }
  /** Tool uses wait for a reply: the listed ones or, without a list, the unanswered ones. */
  | { kind: 'waiting'; ids: string[] }
  | { kind: 'stuck'; reason: string; category?: string; why?: string; budget?: Money | undefined }
  /** Terminated or deleted. */
  | { kind: 'ended'; reason: string; why?: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  /** Server of an MCP tool. */
  server?: unknown
  input: unknown
  /** Id of a child thread of the session. */
  thread?: unknown
  /** Decision of the service itself. */
  permission?: unknown
  /** Source text of the whole event. */
  text?: string | undefined
  /** The tool use was allowed, and the service does not run it, so a client has to send its result. */
  wantsResult?: boolean
  /** The session showed the tool use's id with two inputs or names, so an allow would be ambiguous. */
  isContradicted?: boolean | undefined
  /** The tool use needs no decision any more, so its input and text, which may be long, are dropped. */
  isClosed?: boolean
}

const modelRequest = 'model request'

/**
 * Returns whether a tool use waits for a result: only a client runs the tool use, and no confirmation is
 * needed.
 */
export const needsResult = ({ type, permission }: Partial<ToolUse> = {}): boolean =>
  type === 'agent.custom_tool_use' || (type === 'agent.tool_use' && permission === 'allow')

/** The answer to a tool use: a confirmation or a result. */
interface Answer {
  /** A client sent the answer, not the service. */
  isReply: boolean
  /** The session has shown the answer. */
  isShown: boolean
  /** Decision of the last confirmation. */
  decision: unknown
  /** The last answer is a result. */
  isResult: boolean
}

/** Values that depend on the order of the events. */
class Fold {
  /** Answers by the id of the tool use. */
  readonly answers = new Map<string, Answer>()
  /** Tool uses of the last idle event that were interrupted after it. */
  readonly interrupted = new Set<string>()
  /** Tool uses of this turn that may need an answer. */
  readonly open = new Set<string>()
  /** Tool uses that wait for a result after an allow, each with its earlier permission. */
  readonly forResult = new Map<string, unknown>()
  readonly background = new Background()
  /** The last event of a client that had an effect was an interrupt of the whole session. */
  isHalted = false
  isEmpty = true
  /**
   * `idle by resource`: the session resource was idle, and no event has shown that. `stalled`: nothing has
   * happened for long, and no part of the session is known to work. Both end with the next event.
   */
  status: 'working' | 'idle' | 'idle by resource' | 'stalled' = 'working'
  /** Tool uses of the main thread that the service runs, and `modelRequest`. */
  readonly working = new Set<string>()
  showsIdleEvents = false
  idle: ReturnType<typeof readStopReason> | undefined
  /** The tool uses that `idle` lists. */
  listed: ReadonlySet<string> = new Set()
  /** The tool uses of `listed` without those that were found to be answered. */
  readonly left = new Set<string>()
  details: ReturnType<typeof readStopDetails> = {}
  /** The last known limit of the session's cost. */
  budget: Money | undefined
  end: string | undefined
  error: string | undefined
  /** The service retries no longer after the last error, and nothing has happened since. */
  hasFinalError = false
  /** The last evaluation found that the outcome of this turn was not reached. */
  missed: Stop | undefined
  stoppedAt: string | undefined
  lastStop: string | undefined

  get isIdle(): boolean {
    return this.status === 'idle' || this.status === 'idle by resource'
  }
}

/**
 * The state of a session: a fold over its events in their order. Only the description of each tool use does not depend on the
 * order; `restart` keeps it.
 */
export class SessionState {
  readonly #toolUses = new Map<string, ToolUse>()
  #fold = new Fold()
  /** The ids of all stop events, in their order. */
  readonly stops = new Set<string>()
  /** This run is replying to the waiting tool uses, so a wait for these tool uses is not a stop. */
  #isAttended = false

  /**
   * Adds the newest event. `text` is its source text. Returns whether the event has an effect: some answers
   * have none.
   */
  add(event: SessionEvent, text?: string): boolean {
    if (isToolUse(event)) this.addToolUse(event, text)
    return this.addReduced(event)
  }

  /** Adds the description of a tool use, because `addReduced` gets only its id. */
  addToolUse(event: SessionEvent, text: string | undefined): void {
    const { id } = event
    // A reply could not name a tool use without an id, so the tool use is ignored.
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
    for (const [id, permission] of this.#fold.forResult) this.#setForResult(id, permission, false)
    this.#fold = new Fold()
    this.stops.clear()
  }

  /**
   * Adds the newest event. The tool use was described before, so the event needs only ids. `isAssumed` is
   * true if the service accepted the event and has not shown it yet. Returns whether the event has an effect.
   */
  addReduced(event: SessionEvent, isAssumed = false): boolean {
    const { type } = event
    const fold = this.#fold
    fold.isEmpty = false
    if (fold.status !== 'idle') fold.status = 'working'
    this.#addWork(event)
    if (isToolUse(event)) this.#open(event)
    const hasEffect = !isAnswerType(type) || this.#addAnswer(event, !isAssumed)
    const isForThread = hasEffect && this.#answerThread(getAnsweredId(event))
    // A new turn does not wait for the tool uses of the last one.
    if (type === 'user.message' || type === 'user.interrupt')
      for (const id of fold.open) if (this.#isAbout(event, id)) fold.open.delete(id)
    if (type === 'user.interrupt') {
      for (const id of this.pending.filter((each) => this.#isAbout(event, each))) {
        fold.interrupted.add(id)
        fold.left.delete(id)
      }
      for (const id of fold.background.interrupt(event)) fold.interrupted.add(id)
    }
    if (type === 'user.interrupt' ? isOfMainThread(event) : type.startsWith('user.') && hasEffect)
      fold.isHalted = type === 'user.interrupt'
    fold.background.add(event)
    if (type === 'session.thread_status_idle') this.#waitForResults(readStopReason(event).eventIds)
    if (type === 'user.message' || type === 'user.define_outcome') {
      fold.error = undefined
      fold.missed = undefined
    }
    if (type === 'span.outcome_evaluation_end') fold.missed = readMissedOutcome(event)
    if (type === 'session.error') {
      const { message, server, isFinal } = readError(event.error)
      fold.error = message
      fold.hasFinalError = isFinal && server === undefined
    } else if (/^(agent|user|session\.status_)/.test(type)) fold.hasFinalError = false
    if (type === 'session.usage') fold.budget = readBudget(event.budget)
    if (stopsSession(event)) {
      this.#addStop(event)
      fold.showsIdleEvents ||= this.stop?.kind === 'done' || fold.idle?.type === 'end_turn'
    } else if (startsWork(event) && hasEffect && !isForThread && !(isAnswerType(type) && this.#stillWaits))
      fold.status = 'working'
    return hasEffect
  }

  /** Compares a repeated event with the first one. Returns whether the repetition contradicts a tool use. */
  addAgain(event: SessionEvent, text?: string): boolean {
    const use = this.#toolUses.get(event.id ?? '')
    if (!use || use.isContradicted || isSame(use, readToolUse(event, text))) return false
    use.isContradicted = true
    return true
  }

  /**
   * Records that the session resource says `idle` although the events do not. Applies until the next event.
   */
  addIdleResource(isTerminated = false): void {
    const stop_reason = this.#fold.hasFinalError ? { type: 'retries_exhausted' } : undefined
    this.#addStop({ type: isTerminated ? 'session.status_terminated' : 'session.status_idle', stop_reason })
    this.#fold.status = 'idle by resource'
  }

  /**
   * Records that nothing has happened for long. If tool uses of child threads wait and no part of the session
   * is known to work, the session has stopped for these tool uses, although it is still running. Applies
   * until the next event.
   */
  addSilence(): void {
    const { background, status, working } = this.#fold
    const isStalled = status === 'working' && working.size === 0 && !background.hasWorkingThread
    if (isStalled) this.#fold.status = 'stalled'
  }

  /** No event was added. */
  get isEmpty(): boolean {
    return this.#fold.isEmpty
  }

  /** Only the session resource has shown the stop, although the service shows stops as events. */
  get lacksIdleEvent(): boolean {
    return this.#fold.status === 'idle by resource' && this.#fold.showsIdleEvents
  }

  /** The session has stopped, with or without waiting tool uses. */
  get isIdle(): boolean {
    return this.#fold.isIdle
  }

  /** An event has shown a stop that waits for nothing, so the service shows each such stop. */
  get showsIdleEvents(): boolean {
    return this.#fold.showsIdleEvents
  }

  /** The session may have stopped with an error that no stop event follows. */
  get hasFinalError(): boolean {
    return this.#fold.hasFinalError
  }

  /** The time of the last stop, if the service showed it. */
  get stoppedAt(): string | undefined {
    return this.#fold.stoppedAt
  }

  /** The id of the last stop event. */
  get lastStop(): string | undefined {
    return this.#fold.lastStop
  }

  /** `undefined` while the agent works, or has received something to work on. */
  get stop(): Stop | undefined {
    const { isIdle, end, error, idle, interrupted, missed, budget, details } = this.#fold
    if (!isIdle) return this.#stall
    if (end !== undefined) return { kind: 'ended', reason: end, why: error }
    const { type, eventIds } = idle ?? {}
    const ids = [...new Set([...this.unlisted, ...this.pending])]
    // The specification shows `event_ids` without a type, so the ids wait with any type.
    if (!isStuck(type) && ids.length > 0)
      return this.#isAttended || this.#continuesBesides(type) ? undefined : { kind: 'waiting', ids }
    if (type === 'requires_action' && eventIds?.some((id) => interrupted.has(id)))
      return { kind: 'done', reason: 'interrupted' }
    // All tool uses of the idle event are answered, so the agent continues.
    if (type === 'requires_action' && eventIds?.length) return undefined
    if (this.#continuesWithoutInput(type)) return undefined
    if (type === undefined || type === 'end_turn')
      return missed ?? { kind: 'done', reason: type ?? 'no reason given' }
    if (type === 'budget_reached') return { kind: 'stuck', reason: type, budget }
    const { category, explanation } = details
    return { kind: 'stuck', reason: type, category, why: explanation ?? error }
  }

  /** The stop of a running session in which only tool uses of child threads are open. */
  get #stall(): Stop | undefined {
    const isStalled = this.#fold.status === 'stalled' && !this.#isAttended
    const ids = isStalled ? [...new Set([...this.pendingInThreads, ...this.unlisted])] : []
    return ids.length > 0 ? { kind: 'waiting', ids } : undefined
  }

  /** The workflow runs that have not ended. */
  get openRuns(): WorkflowRun[] {
    return this.#fold.background.openRuns
  }

  /** The session is idle, and its turn has not ended: the agent answers once its workflow runs have ended. */
  get isBetweenRuns(): boolean {
    const { isIdle, end, idle } = this.#fold
    return isIdle && end === undefined && this.#continuesWithoutInput(idle?.type)
  }

  /** The reason of the stop, as the service spells it. */
  get stopReason(): string | undefined {
    const { isIdle, end, idle } = this.#fold
    return isIdle ? (end ?? idle?.type) : undefined
  }

  /**
   * The tool uses that the last `session.status_idle` or the last idle event of a child thread lists, and
   * that still wait. parley answers only these tool uses.
   */
  get pending(): string[] {
    const { left, background } = this.#fold
    return [...new Set([...left, ...background.waiting])].filter(
      (id) => this.#findAnsweredReason(id) === undefined,
    )
  }

  /**
   * The pending tool uses that only child threads list. These tool uses wait even while the session works.
   */
  get pendingInThreads(): string[] {
    const { listed, background } = this.#fold
    return [...background.waiting].filter(
      (id) => !listed.has(id) && this.#findAnsweredReason(id) === undefined,
    )
  }

  /** Entries of the last idle event's `event_ids` that are not ids. */
  get oddIds(): readonly unknown[] {
    return this.#fold.idle?.oddIds ?? []
  }

  /** The pending tool uses, if the session or their threads have stopped for them. */
  get asked(): string[] {
    const { isIdle, end, idle } = this.#fold
    if (!isIdle) return this.pendingInThreads
    return end !== undefined || isStuck(idle?.type) ? [] : this.pending
  }

  /** Returns why a tool use needs no reply any more, or `undefined` while the session waits for the reply. */
  findClosedReason(id: string): string | undefined {
    const { end } = this.#fold
    if (end !== undefined) return `the session is ${end}`
    const why = this.#findAnsweredReason(id)
    if (why !== undefined || this.#isListed(id)) return why
    return 'the session does not wait for it any more'
  }

  /** Sets whether this run is replying to the waiting tool uses. Until it has finished, waiting is not a stop. */
  setAttended(isAttended: boolean): void {
    this.#isAttended = isAttended
  }

  /** The unanswered tool uses, if the session stopped without a list. Some of these tool uses may wait. */
  get unlisted(): string[] {
    return [...this.#fold.open].filter((id) => this.#isUnlisted(id))
  }

  #isUnlisted(id: string): boolean {
    const { idle, open, status, background } = this.#fold
    if (!open.has(id)) return false
    if (idle !== undefined && !idle.eventIds && isWaiting(idle.type)) return !this.#hasThreadEnded(id)
    return status === 'stalled' && background.waitsWithoutList(this.#toolUses.get(id)?.thread)
  }

  toolUse(id: string): ToolUse | undefined {
    return this.#toolUses.get(id)
  }

  /** Returns the tool use that an event answers, if the tool use is known. */
  toolUseOf(event: SessionEvent): ToolUse | undefined {
    const id = getAnsweredId(event)
    return id === undefined ? undefined : this.toolUse(id)
  }

  answerTo(id: string): Readonly<Answer> | undefined {
    return this.#fold.answers.get(id)
  }

  /** Adds the begin or end of work in the main thread. */
  #addWork(event: SessionEvent): void {
    const { type, id } = event
    const { working } = this.#fold
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

  /** An event of a child thread concerns only the tool uses of that thread. */
  #isAbout(event: SessionEvent, id: string): boolean {
    return isOfMainThread(event) || this.#toolUses.get(id)?.thread === event.session_thread_id
  }

  #findAnsweredReason(id: string): string | undefined {
    const answer = this.#fold.answers.get(id)
    if (answer?.decision !== undefined) return `it is answered: ${answer.decision}`
    if (answer) return 'it has a result'
    if (this.#hasThreadEnded(id)) return 'its thread has ended'
    return this.#fold.interrupted.has(id) ? 'it was interrupted' : undefined
  }

  /**
   * Adds the answer to a tool use of a child thread. Returns whether the main thread stays idle, because the
   * thread belongs to a workflow run, or the main thread waits for another answer.
   */
  #answerThread(id = ''): boolean {
    const { background, listed } = this.#fold
    const thread = background.answer(id)
    if (!thread || listed.has(id)) return false
    return thread.run !== undefined || this.#hasListedLeft
  }

  #hasThreadEnded(id: string): boolean {
    return this.#fold.background.hasEnded(id, this.#toolUses.get(id)?.thread)
  }

  /** Returns whether other work of the session continues while tool uses wait. */
  #continuesBesides(reason: string | undefined): boolean {
    const { background, isHalted } = this.#fold
    return background.canContinue || (background.hasUnreadResult && reason !== 'requires_action' && !isHalted)
  }

  /**
   * Returns whether the agent continues without input. After an interrupt the workflow runs may never end.
   */
  #continuesWithoutInput(reason: string | undefined): boolean {
    const { background, isHalted } = this.#fold
    const isPaused = reason === undefined || reason === 'end_turn' || reason === 'retries_exhausted'
    return isPaused && background.isOpen && !isHalted
  }

  /** An idle event that lists only answered tool uses waits for the results of the allowed ones. */
  #waitForResults(listed: readonly string[] = []): void {
    // Some services list answered tool uses next to waiting tool uses. Then the answered tool uses wait for
    // nothing.
    if (!listed.every((id) => this.#fold.answers.has(id))) return
    for (const id of listed) this.#waitForResult(id)
  }

  /** An allowed tool use that the service does not run waits for its result. */
  #waitForResult(id: string): void {
    const { answers, forResult, listed, left } = this.#fold
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
    const { answers, open } = this.#fold
    if (id !== undefined && permission !== 'allow' && permission !== 'deny' && !answers.has(id)) open.add(id)
  }

  /**
   * Adds an answer. Returns whether the answer has an effect: it is the first answer to a tool use for which
   * the session waits, or the tool use is not known.
   */
  #addAnswer(event: SessionEvent, isShown: boolean): boolean {
    const { answers, forResult, open } = this.#fold
    const isResult = event.type !== 'user.tool_confirmation'
    const named = answerFields.map((field) => event[field]).filter((id) => typeof id === 'string')
    const hasEffect = named.length === 0 || named.some((id) => this.#isWaitedFor(id))
    for (const id of named) {
      // The confirmation precedes the wait for a result, so it does not answer that wait.
      if (!isResult && forResult.has(id)) continue
      const earlier = answers.get(id)
      const isReply = event.type.startsWith('user.') || earlier?.isReply === true
      const decision = isResult ? earlier?.decision : event.result
      answers.set(id, { isReply, isShown: isShown || earlier?.isShown === true, isResult, decision })
      open.delete(id)
      const use = this.#toolUses.get(id)
      // An allowed tool use may wait for its result later.
      if (use && (isResult || !(decision === 'allow' && use.type === 'agent.tool_use'))) close(use)
    }
    return hasEffect
  }

  #isListed(id: string): boolean {
    const { listed, background } = this.#fold
    return background.isWaitingFor(id) || listed.has(id)
  }

  /**
   * Tool uses of the last list still wait. Some services send no further idle event after an answer to one of
   * the tool uses.
   */
  get #stillWaits(): boolean {
    return !isStuck(this.#fold.idle?.type) && this.#hasListedLeft
  }

  /** Drops each answered tool use once, so that many answers to a long list take linear time. */
  get #hasListedLeft(): boolean {
    const { left } = this.#fold
    for (const id of left) {
      if (this.#findAnsweredReason(id) === undefined) return true
      left.delete(id)
    }
    return false
  }

  #isWaitedFor(id: string): boolean {
    const { answers, isIdle } = this.#fold
    if (answers.has(id) || this.#hasThreadEnded(id)) return false
    if (!isIdle || !this.#toolUses.has(id)) return true
    return (this.#isListed(id) && this.#findAnsweredReason(id) === undefined) || this.#isUnlisted(id)
  }

  #addStop(event: SessionEvent): void {
    const fold = this.#fold
    fold.status = 'idle'
    fold.stoppedAt = event.processed_at ?? undefined
    fold.lastStop = event.id
    if (event.id !== undefined) this.stops.add(event.id)
    const isIdle = event.type === 'session.status_idle'
    fold.end = isIdle ? undefined : event.type.replace(/^session\.(status_)?/, '')
    if (!isIdle) return
    fold.idle = readStopReason(event)
    fold.listed = new Set(fold.idle.eventIds)
    fold.left.clear()
    for (const id of fold.listed) fold.left.add(id)
    fold.details = readStopDetails(event)
    fold.interrupted.clear()
    fold.background.addIdle()
    this.#waitForResults(fold.idle.eventIds)
    if (!isWaiting(fold.idle.type)) fold.open.clear()
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

/** Returns whether two events of one id show the same tool use. Closed tool uses are not compared. */
const isSame = (one: ToolUse, other: ToolUse): boolean =>
  one.isClosed === true ||
  one.text === other.text ||
  getToolUseFingerprint(one, one.text) === getToolUseFingerprint(other, other.text)

/** Maximum nesting of an input. Its event is one level more. */
export const maxInputDepth = 100

/**
 * Returns a short fingerprint of a tool use that does not depend on the order of the input's keys. Numbers
 * with another source text and duplicate keys make another fingerprint. `text` is an object that contains the
 * input.
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

/** Returns whether a session that is idle for this reason may wait for answers. */
const isWaiting = (reason: string | undefined) => reason === undefined || reason === 'requires_action'

/** Returns whether no answer to a tool use continues the session after this reason. */
const isStuck = (reason: string | undefined) =>
  reason === 'retries_exhausted' || reason === 'budget_reached' || reason === 'refusal'
