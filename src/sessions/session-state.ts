import { hash } from 'node:crypto'
import { isJsonDeeperThan, listJsonFields, toCanonicalJson } from '../wire/json/scanner.ts'
import {
  getAnsweredToolUseId,
  isMainThreadEvent,
  isReplyEventType,
  isTaskEvent,
  isToolUseEvent,
  isUserEvent,
  readEventError,
  readEventText,
  readStopDetails,
  readStopReason,
  type SessionEvent,
  startsAgentWork,
  stopsSession,
  toolUseIdFields,
} from '../wire/sessions/session-event.ts'
import { BackgroundWork } from './background-work.ts'

/**
 * Reason why the session stopped. `explanation` is the service's text about the stop, or about the last error
 * since the last task.
 */
type Stop =
  | { kind: 'done'; reason: string }
  /** If the idle event lists no waiting tool uses, `ids` has all unanswered tool uses. */
  | { kind: 'waiting'; ids: string[] }
  | {
      kind: 'stuck'
      reason: string
      category?: string
      explanation?: string
    }
  | { kind: 'ended'; reason: string; explanation?: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  server?: unknown
  /** `undefined` for a tool use of the main thread. */
  threadId?: unknown
  permission?: unknown
  text?: string | undefined
  /** True if a client allowed the tool use and must now run the tool and send its result. */
  needsResult?: boolean
  /**
   * True if the service sent two tool uses with this id but different inputs or names. parley then cannot
   * tell which of the two would run.
   */
  isContradicted?: boolean | undefined
  /** True if the tool use has a result or was denied. To save memory, `text` is then removed. */
  isClosed?: boolean
  isFinished?: boolean
}

const modelRequest = 'model request'

const workType = /^(agent|user|session\.status_)/

export const needsClientResult = ({ type, permission }: Partial<ToolUse> = {}): boolean =>
  type === 'agent.custom_tool_use' || (type === 'agent.tool_use' && permission === 'allow')

export interface Answer {
  /** True if a client sent the answer, false if the service ran the tool. */
  isReply: boolean
  /** False for an answer that parley sent, until a list or the stream shows it. */
  isShown: boolean
  decision: unknown
  isResult: boolean
  /** Digests of the texts of all results that clients sent. Omitted if the service shows no such text. */
  clientResults?: string[] | undefined
}

export const computeDigest = (text: string): string => hash('sha256', text, 'base64')

/** The part of a session's state that depends on the order of its events. `restart` resets this part. */
class OrderedState {
  protected readonly answers = new Map<string, Answer>()
  /** Ids of the waiting tool uses that an interrupt of a client has ended since the last idle event. */
  protected readonly interrupted = new Set<string>()
  protected readonly unanswered = new Set<string>()
  /** Ids of the tool uses that a client allowed, and whose result a client must send. */
  protected readonly awaitingResult = new Set<string>()
  protected readonly background = new BackgroundWork()
  /**
   * True if a client has interrupted the main thread, and has sent neither a task nor an awaited reply since.
   * parley does not wait for the workflow runs of an interrupted session, because they may never end.
   */
  isHalted = false
  isEmpty = true
  /**
   * `idle by resource`: `GET /v1/sessions/ID` returned `idle`, but there is no idle event. `stalled`: there
   * was no event for a long time, and no work is known to be in progress. The next event ends either state.
   */
  protected status: 'working' | 'idle' | 'idle by resource' | 'stalled' = 'working'
  /** Work in progress in the main thread: `modelRequest`, and ids of tool uses that the service runs. */
  protected activeWork = new Set<string>()
  /**
   * True if the service has sent an idle event after the agent's work. The session then counts as working
   * until the next idle event, even if no event shows work.
   */
  sendsIdleEvents = false
  protected idle: ReturnType<typeof readStopReason> = { type: 'none' }
  /** Ids of the tool uses in the last `session.status_idle`, including answered tool uses. */
  protected listed: ReadonlySet<string> = new Set()
  /** Ids of the unanswered tool uses in the last idle event. May include tool uses whose thread has ended. */
  protected readonly unansweredListed = new Set<string>()
  /** Status of an ended session: `terminated` or `deleted`. */
  protected endStatus: string | undefined
  protected error: string | undefined
  /** True if the service no longer retries after the last error, and no later event shows work. */
  hasFinalError = false
  /**
   * True if the agent may have finished: the last event is a message or an interrupt of the main thread.
   * Spans, usage and unknown events are ignored, because they may follow the last message.
   */
  mayBeDone = false
  protected missedOutcome: Stop | undefined
  /**
   * True if a client replied after the last idle event, and other tool uses of that event still wait. The
   * agent may work on the reply before the next idle event.
   */
  hasReplySinceStop = false
  lastStop: SessionEvent | undefined
  readonly stopIds = new Set<string>()

  get isIdle(): boolean {
    return this.status === 'idle' || this.status === 'idle by resource'
  }
}

/**
 * Computes the state of a session from its events in order. If the order was wrong, the caller calls
 * `restart` and adds the events again. `restart` keeps the tool uses.
 */
export class SessionState extends OrderedState {
  readonly #toolUses = new Map<string, ToolUse>()
  /** Finished tool uses that differ only in their ids share one object, to save memory. */
  readonly #finishedUses = new Map<string, ToolUse>()
  /** True while parley is replying. A session that waits for the replies then does not count as stopped. */
  isReplying = false

  /**
   * Adds the newest event. With `canFinish`, marks a tool use as finished if the event is its result and
   * nobody had to confirm the tool use. Returns true if it marked a tool use. `restart` keeps the mark, so
   * the caller can drop the event to save memory.
   */
  add(event: SessionEvent, text?: string, canFinish = false): boolean {
    // `addReduced` stores no answer to a finished tool use, so the mark comes first.
    const isFinished = canFinish && this.#finishToolUse(getAnsweredToolUseId(event) ?? '')
    this.addToolUse(event, text)
    this.addReduced(event)
    return isFinished
  }

  /** Adds the event if it is a tool use. */
  addToolUse(event: SessionEvent, text: string | undefined): void {
    const { id } = event
    // A tool use without an id is ignored, because nobody can reply to it.
    if (id === undefined || !isToolUseEvent(event)) return
    this.addRepeated(event, text)
    const earlier = this.#toolUses.get(id)
    if (earlier?.isClosed) return
    const use = readToolUse(event, text)
    use.isContradicted = earlier?.isContradicted
    this.#toolUses.set(id, use)
  }

  restart(): void {
    Object.assign(this, new OrderedState())
  }

  /**
   * Adds the newest event, but not the name and input of a tool use, which `addToolUse` adds. `isUnseen`: the
   * service accepted the event, but no list or stream has shown it.
   */
  addReduced(event: SessionEvent, isUnseen = false): void {
    const { type } = event
    this.isEmpty = false
    if (this.status !== 'idle') this.status = 'working'
    this.#updateWork(event)
    if (isToolUseEvent(event) && event.id !== undefined && !isDecided(event) && !this.answers.has(event.id))
      this.unanswered.add(event.id)
    const hasEffect = !isReplyEventType(type) || this.#addAnswer(event, !isUnseen)
    const isForThread = hasEffect && this.#answerInThread(getAnsweredToolUseId(event))
    // After a message or an interrupt, the session no longer waits for the earlier tool uses.
    if (type === 'user.message' || type === 'user.interrupt')
      for (const id of this.unanswered) if (this.#affects(event, id)) this.unanswered.delete(id)
    if (type === 'user.interrupt') {
      for (const id of this.pending.filter((each) => this.#affects(event, each))) {
        this.interrupted.add(id)
        this.unansweredListed.delete(id)
      }
      for (const id of this.background.interrupt(event)) this.interrupted.add(id)
    }
    if (type === 'user.interrupt' ? isMainThreadEvent(event) : isUserEvent(event) && hasEffect)
      this.isHalted = type === 'user.interrupt'
    this.background.add(event)
    if (type === 'session.thread_status_idle') this.#waitForResults(readStopReason(event).eventIds)
    if (isTaskEvent(event)) {
      this.error = undefined
      this.missedOutcome = undefined
    }
    if (type === 'span.outcome_evaluation_end') this.missedOutcome = readMissedOutcome(event)
    if (type === 'session.error') {
      const { message, server, isFinal } = readEventError(event.error)
      this.error = message
      this.hasFinalError = isFinal && server === undefined
    } else if (workType.test(type)) this.hasFinalError = false
    if ((type === 'agent.message' || type === 'user.interrupt') && isMainThreadEvent(event))
      this.mayBeDone = true
    else if (workType.test(type) || /^(system|session\.error)/.test(type)) this.mayBeDone = false
    // Some services send the next idle event only after the last reply. Until that reply, the session stays
    // idle.
    const isEarlierReply = isReplyEventType(type) && !isStuck(this.idle.type) && this.#hasUnansweredListed
    if (stopsSession(event)) {
      this.#addStop(event)
      this.sendsIdleEvents ||= this.stop?.kind === 'done' || this.idle.type === 'end_turn'
    } else if (startsAgentWork(event) && hasEffect) {
      this.hasReplySinceStop = isForThread || isEarlierReply
      if (!this.hasReplySinceStop) this.status = 'working'
    }
  }

  /**
   * Compares a tool use with the earlier tool use that has the same id. Returns true for the first
   * difference.
   */
  addRepeated(event: SessionEvent, text?: string): boolean {
    const use = this.#toolUses.get(event.id ?? '')
    if (!use || use.isContradicted || isSame(use, readToolUse(event, text))) return false
    use.isContradicted = true
    return true
  }

  /**
   * Records that `GET /v1/sessions/ID` returned `idle` or `terminated` although no event shows it. The next
   * event ends this state.
   */
  addIdleResource(isTerminated = false): void {
    const stop_reason = this.hasFinalError ? { type: 'retries_exhausted' } : undefined
    this.#addStop({ type: isTerminated ? 'session.status_terminated' : 'session.status_idle', stop_reason })
    this.status = 'idle by resource'
  }

  /**
   * Records that there was no event for a long time. A running session then counts as stopped if child
   * threads wait for replies and nothing else works. The next event ends this state.
   */
  addSilence(): void {
    const { background, status, activeWork } = this
    const isStalled = status === 'working' && activeWork.size === 0 && background.workingThreads.length === 0
    if (isStalled) this.status = 'stalled'
  }

  get lacksIdleEvent(): boolean {
    return this.status === 'idle by resource' && this.sendsIdleEvents
  }

  /** `undefined` while the agent works, or if the agent still has to process client events. */
  get stop(): Stop | undefined {
    const { isIdle, isHalted, endStatus, error, idle, interrupted, missedOutcome, lastStop, background } =
      this
    if (!isIdle) return this.#stalledStop
    if (endStatus !== undefined) return { kind: 'ended', reason: endStatus, explanation: error }
    const { type, eventIds } = idle
    const ids = [...new Set([...this.unlisted, ...this.pending])]
    const willReadResult = background.hasUnreadResult && type !== 'requires_action' && !isHalted
    // The session waits for the tool uses that an idle event lists, even if the event gives no reason. The
    // specification shows such events (src/wire/README.md: session events, 6).
    if (!isStuck(type) && ids.length > 0)
      return this.isReplying || background.canContinue || willReadResult
        ? undefined
        : { kind: 'waiting', ids }
    if (type === 'requires_action' && eventIds?.some((id) => interrupted.has(id)))
      return { kind: 'done', reason: 'interrupted' }
    // All tool uses of the idle event are answered, so the agent continues.
    if (type === 'requires_action' && eventIds?.length) return undefined
    if (this.#continuesWithoutInput(type)) return undefined
    if (type === undefined || type === 'end_turn')
      return missedOutcome ?? { kind: 'done', reason: type ?? 'no reason given' }
    const { category, explanation } = lastStop ? readStopDetails(lastStop) : {}
    return { kind: 'stuck', reason: type, category, explanation: explanation ?? error }
  }

  get #stalledStop(): Stop | undefined {
    const isStalled = this.status === 'stalled' && !this.isReplying
    const ids = isStalled ? [...new Set([...this.pendingInThreads, ...this.unlisted])] : []
    return ids.length > 0 ? { kind: 'waiting', ids } : undefined
  }

  get openRuns() {
    return [...this.background.runs.values()]
  }

  get isWaitingForRuns(): boolean {
    const { isIdle, endStatus, idle } = this
    return isIdle && endStatus === undefined && this.#continuesWithoutInput(idle.type)
  }

  get stopReason(): string | undefined {
    const { isIdle, endStatus, idle } = this
    return isIdle ? (endStatus ?? idle.type) : undefined
  }

  /**
   * Ids of the unanswered tool uses in the last `session.status_idle` or in the last idle event of a child
   * thread. parley replies only to these tool uses.
   */
  get pending(): string[] {
    const { unansweredListed, background } = this
    return [...new Set([...unansweredListed, ...background.waiting.keys()])].filter(
      (id) => this.#findAnsweredReason(id) === undefined,
    )
  }

  /** Pending tool uses that only child threads list. They wait even if the main thread works. */
  get pendingInThreads(): string[] {
    return this.pending.filter((id) => !this.listed.has(id))
  }

  get answerable(): string[] {
    const { isIdle, endStatus, idle } = this
    if (endStatus !== undefined || (isIdle && isStuck(idle.type))) return []
    return isIdle ? this.pending : this.pendingInThreads
  }

  findClosedReason(id: string): string | undefined {
    const { endStatus } = this
    if (endStatus !== undefined) return `the session is ${endStatus}`
    const why = this.#findAnsweredReason(id)
    if (why !== undefined || this.#isListed(id)) return why
    return 'the session does not wait for it any more'
  }

  /**
   * Ids of all unanswered tool uses, if the session stopped without listing the waiting ones. Any of these
   * tool uses may be waiting.
   */
  get unlisted(): string[] {
    return [...this.unanswered].filter((id) => this.#isUnlisted(id))
  }

  #isUnlisted(id: string): boolean {
    const { idle, unanswered, status, background } = this
    if (!unanswered.has(id)) return false
    if (!idle.eventIds && isWaiting(idle.type)) return !this.#hasThreadEnded(id)
    const thread = background.threads.get(this.#toolUses.get(id)?.threadId)
    return status === 'stalled' && thread?.is === 'waiting without list'
  }

  contradictToolUse(id: string): void {
    const use = this.#toolUses.get(id)
    if (use) use.isContradicted = true
  }

  getToolUse(id: string): ToolUse | undefined {
    const use = this.#toolUses.get(id)
    if (use?.isFinished) return { ...use, id }
    return use && this.awaitingResult.has(id) ? { ...use, permission: 'allow', needsResult: true } : use
  }

  getAnswer(id: string): Readonly<Answer> | undefined {
    return this.answers.get(id)
  }

  #updateWork(event: SessionEvent): void {
    const { type, id } = event
    const { activeWork } = this
    if (!isMainThreadEvent(event)) return
    if (stopsSession(event)) activeWork.clear()
    if (type === 'span.model_request_start') activeWork.add(modelRequest)
    if (type === 'span.model_request_end') activeWork.delete(modelRequest)
    const isAllowedUse = isToolUseEvent(event) && event.evaluated_permission === 'allow'
    if (id !== undefined && isAllowedUse && !this.#hasAnswer(id)) activeWork.add(id)
    const answered = getAnsweredToolUseId(event)
    if (answered === undefined) return
    if (
      event.result === 'allow' &&
      isMainThreadEvent({ type, session_thread_id: this.#toolUses.get(answered)?.threadId })
    )
      activeWork.add(answered)
    // A `Set` does not free the memory of removed members (src/README.md), so a new one replaces an empty
    // one.
    else if (activeWork.delete(answered) && activeWork.size === 0) this.activeWork = new Set()
  }

  #affects(event: SessionEvent, id: string): boolean {
    return isMainThreadEvent(event) || this.#toolUses.get(id)?.threadId === event.session_thread_id
  }

  #findAnsweredReason(id: string): string | undefined {
    const answer = this.answers.get(id)
    if (answer?.decision !== undefined) return `it already has the answer ${answer.decision}`
    if (this.#hasAnswer(id)) return 'it has a result'
    if (this.#hasThreadEnded(id)) return 'its thread has ended'
    return this.interrupted.has(id) ? 'it was interrupted' : undefined
  }

  /** Records an answer to a child thread's tool use. Returns whether the main thread stays idle after it. */
  #answerInThread(id = ''): boolean {
    const { background, listed } = this
    const thread = background.answer(id)
    if (!thread || listed.has(id)) return false
    return thread.run !== undefined || this.#hasUnansweredListed
  }

  #hasThreadEnded(id: string): boolean {
    return this.background.hasThreadEnded(id, this.#toolUses.get(id)?.threadId)
  }

  #continuesWithoutInput(reason: string | undefined): boolean {
    const { background, isHalted } = this
    const isPaused = reason === undefined || reason === 'end_turn' || reason === 'retries_exhausted'
    return isPaused && (background.hasUnreadResult || background.runs.size > 0) && !isHalted
  }

  /**
   * If all tool uses of an idle event have answers, the session waits for the results of the allowed ones.
   */
  #waitForResults(listed: readonly string[] | undefined): void {
    // Some services list answered tool uses together with waiting tool uses. The answered tool uses then need
    // no result.
    if (listed?.every((id) => this.#hasAnswer(id))) for (const id of listed) this.#waitForResult(id)
  }

  #waitForResult(id: string): void {
    const { answers, awaitingResult, listed, unansweredListed } = this
    const { isShown, decision, isResult } = answers.get(id) ?? {}
    const use = this.#toolUses.get(id)
    if (use?.type !== 'agent.tool_use' || !isShown || isResult || decision !== 'allow') return
    answers.delete(id)
    if (listed.has(id)) unansweredListed.add(id)
    awaitingResult.add(id)
  }

  #addAnswer(event: SessionEvent, isShown: boolean): boolean {
    const { answers, awaitingResult, unanswered } = this
    const isResult = event.type !== 'user.tool_confirmation'
    const named = toolUseIdFields.map((field) => event[field]).filter((id) => typeof id === 'string')
    const hasEffect = named.length === 0 || named.some((id) => this.#isWaitedFor(id))
    for (const id of named) {
      // The session already waits for the result of this tool use, so a confirmation is not its answer.
      if (!isResult && awaitingResult.has(id)) continue
      const earlier = answers.get(id)
      const isReply = isUserEvent(event) || earlier?.isReply === true
      const decision = isResult ? earlier?.decision : event.result
      const text = isResult && isUserEvent(event) ? readEventText(event) : ''
      const clientResults = text === '' ? earlier?.clientResults : (earlier?.clientResults ?? [])
      if (text !== '') clientResults?.push(computeDigest(text))
      unanswered.delete(id)
      const use = this.#toolUses.get(id)
      if (use?.isFinished && !isReply) continue
      const wasShown = earlier?.isShown === true
      answers.set(id, { isReply, isShown: isShown || wasShown, isResult, decision, clientResults })
      // An allowed tool use keeps its input, because a client may have to run the tool.
      if (use && (isResult || !(decision === 'allow' && use.type === 'agent.tool_use'))) closeToolUse(use)
    }
    return hasEffect
  }

  #finishToolUse(id: string): boolean {
    const use = this.#toolUses.get(id)
    if (use?.permission !== 'allow' || this.answers.get(id)?.isReply || this.#isListed(id)) return false
    const key = JSON.stringify([use.type, use.name, use.server, use.threadId, use.isContradicted])
    const finished = this.#finishedUses.get(key) ?? { ...closeToolUse(use), id: '', isFinished: true }
    this.#finishedUses.set(key, finished)
    this.#toolUses.set(id, finished)
    return true
  }

  #hasAnswer(id: string): boolean {
    return this.answers.has(id) || this.#toolUses.get(id)?.isFinished === true
  }

  #isListed(id: string): boolean {
    const { listed, background } = this
    return background.waiting.has(id) || listed.has(id)
  }

  /**
   * Also removes answered tool uses from `unansweredListed`, so that answering a long list takes linear time.
   */
  get #hasUnansweredListed(): boolean {
    const { unansweredListed } = this
    for (const id of unansweredListed) {
      if (this.#findAnsweredReason(id) === undefined) return true
      unansweredListed.delete(id)
    }
    return false
  }

  #isWaitedFor(id: string): boolean {
    const { isIdle } = this
    if (this.#hasAnswer(id) || this.#hasThreadEnded(id)) return false
    if (!isIdle || !this.#toolUses.has(id)) return true
    return (this.#isListed(id) && this.#findAnsweredReason(id) === undefined) || this.#isUnlisted(id)
  }

  #addStop(event: SessionEvent): void {
    this.status = 'idle'
    this.hasReplySinceStop = false
    this.lastStop = event
    if (event.id !== undefined) this.stopIds.add(event.id)
    const isIdle = event.type === 'session.status_idle'
    this.endStatus = isIdle ? undefined : event.type.replace(/^session\.(status_)?/, '')
    if (!isIdle) return
    this.idle = readStopReason(event)
    this.listed = new Set(this.idle.eventIds)
    this.unansweredListed.clear()
    for (const id of this.listed) this.unansweredListed.add(id)
    this.interrupted.clear()
    this.background.hasUnreadResult = false
    this.#waitForResults(this.idle.eventIds)
    if (!isWaiting(this.idle.type)) this.unanswered.clear()
  }
}

function readMissedOutcome({ result, explanation }: SessionEvent): Stop | undefined {
  if (result !== 'failed' && result !== 'max_iterations_reached') return undefined
  const text = typeof explanation === 'string' ? explanation : undefined
  return { kind: 'stuck', reason: 'the outcome was not reached', category: result, explanation: text }
}

function readToolUse(event: SessionEvent, text = JSON.stringify(event)): ToolUse {
  const { id = '', type, name } = event
  return {
    id,
    type,
    name: typeof name === 'string' ? name : '',
    server: event.mcp_server_name,
    threadId: event.session_thread_id,
    permission: event.evaluated_permission,
    text,
    isContradicted: undefined,
    isClosed: false,
    isFinished: false,
  }
}

const closeToolUse = (use: ToolUse): ToolUse => Object.assign(use, { text: undefined, isClosed: true })

/**
 * After a result or a denial, parley no longer has the tool use's content, so any repetition counts as equal.
 */
const isSame = (one: ToolUse, other: ToolUse): boolean =>
  one.isClosed === true ||
  one.text === other.text ||
  getToolUseFingerprint(one, one.text) === getToolUseFingerprint(other, other.text)

export const maxToolInputDepth = 100

/**
 * Returns a hash of a tool use. `text` is the JSON text of an object with the field `input`. The order of the
 * input's fields does not change the hash. Duplicate fields and the source text of numbers do.
 */
export function getToolUseFingerprint(
  { type, server, name }: { [Field in 'type' | 'server' | 'name']?: unknown },
  text = '{}',
): string {
  const given = listJsonFields(text).flatMap(({ name, json }) => (name === 'input' ? json : []))
  const inputs = (given.length > 0 ? given : ['{}']).map((input) =>
    isJsonDeeperThan(input, maxToolInputDepth) ? input : toCanonicalJson(input),
  )
  return computeDigest(JSON.stringify([type, server ?? null, name, inputs]))
}

const isDecided = ({ evaluated_permission: permission }: SessionEvent) =>
  permission === 'allow' || permission === 'deny'

const isWaiting = (reason: string | undefined) => reason === undefined || reason === 'requires_action'

/** A session that stopped for one of these reasons does not continue after a reply. */
const isStuck = (reason: string | undefined) =>
  reason === 'retries_exhausted' || reason === 'budget_reached' || reason === 'refusal'
