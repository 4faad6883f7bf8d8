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
  answeredId,
  answerFields,
  isAnswer,
  isOfMainThread,
  isStop,
  isToolUse,
  isWork,
  readStopDetails,
  readStopReason,
  type SessionEvent,
} from '../wire/sessions/session-event.ts'
import { type Money, readBudget } from '../wire/sessions/usage.ts'

/** How a session stopped; `why` is the last error that it showed in this turn. */
type Stop =
  | { kind: 'done'; reason: string }
  /** Tool uses wait for an answer: those that are listed or, if there is no list, those that have none. */
  | { kind: 'waiting'; ids: string[] }
  | { kind: 'stuck'; reason: string; category?: string; why?: string; budget?: Money | undefined }
  /** Terminated or deleted. */
  | { kind: 'ended'; reason: string; why?: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  /** Of an MCP tool. */
  server?: unknown
  input: unknown
  /** Of a further thread of the session. */
  thread?: unknown
  /** What the service itself decided. */
  permission?: unknown
  /** The whole event as it is spelled. */
  text?: string | undefined
  /** It was allowed, and the service does not carry it out: a client has to give its result. */
  wantsResult?: boolean
  /** Its id was shown with two inputs, or names: nobody knows what an allowance would allow. */
  isContradicted?: boolean | undefined
  /** Nobody decides on it any more: its input and its text, which may be long, are not kept. */
  isClosed?: boolean
}

/** Whether it waits for a result: nobody but the client carries it out, and nobody asks whether it may be. */
export const needsResult = ({ type, permission }: Partial<ToolUse> = {}): boolean =>
  type === 'agent.custom_tool_use' || (type === 'agent.tool_use' && permission === 'allow')

/** The answer to a tool use: a decision, or a result. */
interface Answer {
  /** A client gave it, and not the service. */
  isReply: boolean
  /** The service has shown it, so that what it shows later knows of it. */
  isShown: boolean
  /** Of the last confirmation. */
  decision: unknown
  /** The last that came is a result. */
  isResult: boolean
}

/** What a session's events, added in their order, say about it. */
export class SessionState {
  readonly #toolUses = new Map<string, ToolUse>()
  /** By the id of the tool use. */
  readonly #answers = new Map<string, Answer>()
  /** Tool uses of the last rest that were interrupted since. */
  readonly #interrupted = new Set<string>()
  /** Replies to what waits are being made here: it does not rest for good. */
  #isAttended = false
  /** Tool uses of this turn that may need an answer. */
  readonly #open = new Set<string>()
  /** Nothing has happened in it. */
  isEmpty = true
  /** It has stopped, whatever it waits for. */
  isAtRest = false
  /** The service said that it is idle, and no event did. */
  #isToldIdle = false
  /** An event has shown a rest that waits for nothing, so that each is shown. */
  showsRests = false
  #idle: ReturnType<typeof readStopReason> | undefined
  #details: ReturnType<typeof readStopDetails> = {}
  /** The most that the session may cost, as it was told last. */
  #budget: Money | undefined
  #end: string | undefined
  #error: string | undefined
  /** The last evaluation said that the outcome of this turn was not reached. */
  #missed: Stop | undefined
  /** When the last event came at which it stopped, if that is known. */
  stoppedAt: string | undefined
  /** The ids of all events at which it stopped. */
  readonly stops = new Set<string>()

  /** `text` is the event as it is spelled. */
  add(event: SessionEvent, text?: string): void {
    const { type } = event
    this.isEmpty = false
    // What comes next says that it goes on.
    if (this.#isToldIdle) this.expectWork()
    if (isToolUse(event)) this.#addToolUse(event, text)
    // An answer may be added when it is sent, and come again when the service shows it, later than what came of it.
    const isKnown = isAnswer(type) && !this.#addAnswer(event)
    // In a new turn nobody waits for what the last one left open.
    if (type === 'user.message' || type === 'user.interrupt')
      for (const id of this.#open) if (this.#isAbout(event, id)) this.#open.delete(id)
    if (type === 'user.interrupt')
      for (const id of this.pending.filter((each) => this.#isAbout(event, each))) this.#interrupted.add(id)
    if (type === 'user.message' || type === 'user.define_outcome') {
      this.#error = undefined
      this.#missed = undefined
    }
    if (type === 'span.outcome_evaluation_end') this.#missed = readMissedOutcome(event)
    if (type === 'session.error') this.#error = readErrorMessage(event)
    if (type === 'session.usage') this.#budget = readBudget(event.budget)
    if (isStop(event)) {
      this.#addStop(event)
      this.showsRests ||= this.stop?.kind === 'done'
    } else if (isWork(event) && !isKnown) this.isAtRest = false
  }

  /** An event that was added before came again. Returns whether it is now a tool use that was shown with two inputs. */
  addAgain(event: SessionEvent, text?: string): boolean {
    const use = this.#toolUses.get(event.id ?? '')
    if (!use || use.isContradicted || isSame(use, readToolUse(event, text))) return false
    use.isContradicted = true
    return true
  }

  /** Something was sent to the session that it has not shown yet, so that it has not stopped for good. */
  expectWork(): void {
    this.isAtRest = false
    this.#isToldIdle = false
  }

  /** The service said that it is idle, when nothing more came. */
  addTold(): void {
    this.#addStop({ type: 'session.status_idle' })
    this.#isToldIdle = true
  }

  /** Absent while the agent works, or has been sent something since. */
  get stop(): Stop | undefined {
    if (!this.isAtRest) return undefined
    if (this.#end !== undefined) return { kind: 'ended', reason: this.#end, why: this.#error }
    const { type, eventIds } = this.#idle ?? {}
    const ids = eventIds ? this.pending : this.unlisted
    // The ids are what the service's page shows of a reason, so they count whatever else its type says.
    if (!isStuck(type) && ids.length > 0) return this.#isAttended ? undefined : { kind: 'waiting', ids }
    if (type === 'requires_action' && eventIds?.some((id) => this.#interrupted.has(id)))
      return { kind: 'done', reason: 'interrupted' }
    // All that it waits for is answered: the agent goes on.
    if (type === 'requires_action' && eventIds?.length) return undefined
    if (type === undefined || type === 'end_turn')
      return this.#missed ?? { kind: 'done', reason: type ?? 'no reason given' }
    if (type === 'budget_reached') return { kind: 'stuck', reason: type, budget: this.#budget }
    const { category, explanation } = this.#details
    return { kind: 'stuck', reason: type, category, why: explanation ?? this.#error }
  }

  /** Why it stopped, as the service says it, if it has. */
  get stopReason(): string | undefined {
    return this.isAtRest ? (this.#end ?? this.#idle?.type) : undefined
  }

  /** The tool uses that the last `session.status_idle` lists and that still wait: only these may be answered. */
  get pending(): string[] {
    return this.#idle?.eventIds?.filter((id) => this.#whyDone(id) === undefined) ?? []
  }

  /** Entries of the last idle event's `event_ids` that are not ids. */
  get oddIds(): readonly unknown[] {
    return this.#idle?.oddIds ?? []
  }

  /** The pending tool uses, if the session rests for them. */
  get asked(): string[] {
    return !this.isAtRest || this.#end !== undefined || isStuck(this.#idle?.type) ? [] : this.pending
  }

  /** Why a tool use needs no reply any more, in words; absent as long as the session waits for it. */
  whyOver(id: string): string | undefined {
    if (this.#end !== undefined) return `the session is ${this.#end}`
    const why = this.#whyDone(id)
    if (why !== undefined || this.#idle?.eventIds?.includes(id)) return why
    return 'the session does not wait for it any more'
  }

  /** As long as replies to what waits are being made here, that it waits for them is not a stop. */
  attend(isAttended: boolean): void {
    this.#isAttended = isAttended
  }

  /** What was added last came before its last stop, if that is this one. */
  restAgain(stop: string | undefined): void {
    if (stop !== undefined && [...this.stops].at(-1) === stop) this.isAtRest = true
  }

  /** If that lists none, the tool uses that have no answer: what of these waits is not known. */
  get unlisted(): string[] {
    return this.#idle && !this.#idle.eventIds && isWaiting(this.#idle.type) ? [...this.#open] : []
  }

  toolUse(id: string): ToolUse | undefined {
    return this.#toolUses.get(id)
  }

  /** The tool use whose decision or result an event is, if that is known. */
  toolUseOf(event: SessionEvent): ToolUse | undefined {
    const id = answeredId(event)
    return id === undefined ? undefined : this.toolUse(id)
  }

  answerTo(id: string): Readonly<Answer> | undefined {
    return this.#answers.get(id)
  }

  /** What an event of a further thread ends is of that thread alone. */
  #isAbout(event: SessionEvent, id: string): boolean {
    return isOfMainThread(event) || this.#toolUses.get(id)?.thread === event.session_thread_id
  }

  #whyDone(id: string): string | undefined {
    const answer = this.#answers.get(id)
    if (answer?.decision !== undefined) return `it is answered: ${answer.decision}`
    if (answer) return 'it has a result'
    return this.#interrupted.has(id) ? 'it was interrupted' : undefined
  }

  /** A rest after an allowance that lists the tool use waits for its result: nobody but a client carries it out. */
  #askForResult(id: string): void {
    const { isShown, decision, isResult } = this.#answers.get(id) ?? {}
    const use = this.#toolUses.get(id)
    if (use?.type !== 'agent.tool_use' || !isShown || isResult || decision !== 'allow') return
    this.#answers.delete(id)
    use.permission = 'allow'
    use.wantsResult = true
  }

  #addToolUse(event: SessionEvent, text: string | undefined): void {
    const { id, evaluated_permission: permission } = event
    // Nobody could answer one without an id.
    if (id === undefined) return
    this.addAgain(event, text)
    const earlier = this.#toolUses.get(id)
    if (earlier?.isClosed) return
    const use = readToolUse(event, text)
    use.isContradicted = earlier?.isContradicted
    this.#toolUses.set(id, use)
    if (permission !== 'allow' && permission !== 'deny' && !this.#answers.has(id)) this.#open.add(id)
  }

  /** Returns whether it says something new, or does not say what it answers. */
  #addAnswer(event: SessionEvent): boolean {
    const ids = answerFields.map((field) => event[field]).filter((id) => typeof id === 'string')
    const isNew = ids.length === 0 || ids.some((id) => !this.#answers.has(id))
    const isResult = event.type !== 'user.tool_confirmation'
    const isShown = event.id !== undefined
    for (const id of ids) {
      const earlier = this.#answers.get(id)
      const isReply = event.type.startsWith('user.') || earlier?.isReply === true
      const decision = isResult ? earlier?.decision : event.result
      this.#answers.set(id, { isReply, isShown, isResult, decision })
      this.#open.delete(id)
      const use = this.#toolUses.get(id)
      // One that was allowed may wait for its result.
      if (use && (isResult || !(decision === 'allow' && use.type === 'agent.tool_use'))) close(use)
    }
    return isNew
  }

  #addStop(event: SessionEvent): void {
    this.isAtRest = true
    this.stoppedAt = event.processed_at ?? undefined
    if (event.id !== undefined) this.stops.add(event.id)
    const isIdle = event.type === 'session.status_idle'
    this.#end = isIdle ? undefined : event.type.replace(/^session\.(status_)?/, '')
    if (!isIdle) return
    this.#idle = readStopReason(event)
    this.#details = readStopDetails(event)
    this.#interrupted.clear()
    const listed = this.#idle.eventIds ?? []
    // Some services list what is answered beside what is not.
    if (listed.every((id) => this.#answers.has(id))) for (const id of listed) this.#askForResult(id)
    if (!isWaiting(this.#idle.type)) this.#open.clear()
  }
}

function readMissedOutcome({ result, explanation }: SessionEvent): Stop | undefined {
  if (result !== 'failed' && result !== 'max_iterations_reached') return undefined
  const why = typeof explanation === 'string' ? explanation : undefined
  return { kind: 'stuck', reason: 'the outcome was not reached', category: result, why }
}

function readErrorMessage({ error }: SessionEvent): string | undefined {
  const { message } = (typeof error === 'object' && error ? error : {}) as { message?: unknown }
  return typeof message === 'string' && message !== '' ? message : undefined
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

/** Whether two events of one id show the same tool use. Nobody decides on one that is closed. */
const isSame = (one: ToolUse, other: ToolUse): boolean =>
  one.isClosed === true || one.text === other.text || markOf(one, one.text) === markOf(other, other.text)

/** How deep an input may be nested to be read; its event is one level around it. */
export const deepestInput = 100

/**
 * The same for the same tool use, if the keys of its input stand in another order too, in a few bytes. A number that is
 * spelled in another way is another, and so is a key that is there twice. `text` is an object that has the input.
 */
export function markOf(
  { type, server, name }: { [Field in 'type' | 'server' | 'name']?: unknown },
  text = '{}',
): string {
  const children = [...listChildren(text, skipBlanks(text, 0))]
  const given = children
    .filter((child) => child.name === 'input')
    .map(({ start, end }) => text.slice(start, end))
  const inputs = (given.length > 0 ? given : ['{}']).map((input) =>
    isDeeperThan(input, deepestInput) ? input : [parseWithSourceTexts(input), [...listTokens(input)].sort()],
  )
  const whole = JSON.stringify([type, server ?? null, name, inputs], (_, value) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
  return createHash('sha256').update(whole).digest('base64')
}

/** Whether a session that is idle for this reason may wait for answers. */
const isWaiting = (reason: string | undefined) => reason === undefined || reason === 'requires_action'

/** Reasons after which no answer to a tool use makes the agent go on. */
const isStuck = (reason: string | undefined) =>
  reason === 'retries_exhausted' || reason === 'budget_reached' || reason === 'refusal'
