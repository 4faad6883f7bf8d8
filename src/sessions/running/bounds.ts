import { tokensInWords } from '../../content/tokens.ts'
import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { formatMoney, toMinor } from '../../io/money.ts'
import { callAfter } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isOfMainThread, readStopReason, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { isOfClient, isTask } from '../following/followed-turn.ts'
import type { Follower } from '../following/follower.ts'
import { endure, freshPatience, waitPatiently } from '../patience.ts'
import { readSession } from '../read-session.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionAccess } from '../session.ts'
import { isWork } from '../session-state.ts'
import { describeUsage } from '../usage-text.ts'
import type { Audit } from './audit.ts'
import { lineFor } from './replying.ts'
import { Spending } from './spending.ts'

/** The most that a run may use. */
export interface BoundFlags {
  maxTotalTokens?: number
  /** As it was given, in major units. */
  maxCost?: string
}

/** What a run works with. */
export interface BoundedRun extends SessionAccess {
  audit: Audit
  /** The command that goes on, by a new message or as the session stands. */
  resume(byMessage: boolean): string[]
}

/**
 * Whether the run is within its bounds. `reached`: a usage said that it is not, and nothing is replied to any more; while
 * the session works a timer runs, since it may come to rest by itself. `interrupting`: it did not, so an interrupt is in the
 * journal, and is posted until it may have been taken; if the session rests before, that is given up, and it is `reached`
 * again. `interrupted`: it may have been taken, or there is no more to do.
 */
type BoundsCourse =
  | { is: 'within' }
  | { is: 'reached'; why: string; cancel: (() => void) | undefined }
  | { is: 'interrupting'; why: string; until: number; cancel(): void }
  | { is: 'interrupted'; why: string; until: number }

/**
 * What the session shows of the interrupt that an earlier run began: `begun` is its place, as the journal has it, `last` the
 * event itself, `rested` that the turn came to its end after it, `over` that another one has begun. Some lists leave out what
 * clients send.
 */
type InterruptShown = 'no' | 'begun' | 'last' | 'rested' | 'over'

/** How long a session may take to come to rest: by itself, and when it was interrupted. Milliseconds. */
const [grace, longestEnd] = [1000, 30_000]

/** How often a session that works is asked what it costs. Milliseconds. */
const interval = 30_000

/** What a run uses, as it is told, and the bounds at which it is stopped. */
export class Bounds {
  readonly #run: BoundedRun
  readonly #flags: BoundFlags
  readonly #spending = new Spending()
  #follower: Follower | undefined
  #course: BoundsCourse = { is: 'within' }
  #failure: unknown
  #isRounded = false
  #interruptShown: InterruptShown
  #showsClients = false
  #cancelAsking = () => {}
  /** What the last interrupt that was begun is to come to. */
  #interrupting = Promise.resolve()

  constructor(run: BoundedRun, flags: BoundFlags) {
    this.#run = run
    this.#flags = flags
    this.#interruptShown = run.audit.interrupt?.after === '' ? 'begun' : 'no'
  }

  addPast(items: readonly EventItem[]): void {
    for (const { event } of items) {
      this.#spending.add(event)
      this.#lookForTurn(event)
    }
  }

  /** A task is about to be sent, or the session is taken up without one. */
  async begin(hasTask: boolean): Promise<void> {
    if (hasTask) this.#spending.begin()
    else this.#spending.takeUp()
    if (this.#isShown && this.#spending.lacksBase) this.#spending.addBase(await this.#ask())
  }

  /** From here on the session is followed. */
  follow(follower: Follower): void {
    this.#follower = follower
    this.#tell()
    if (this.#flags.maxCost !== undefined) this.#askAgain()
  }

  add(items: readonly EventItem[]): void {
    for (const { event } of items) {
      this.#spending.add(event)
      this.#lookForTurn(event)
    }
    this.#tell()
    this.#check()
  }

  /** Nothing may be begun any more. */
  get isReached(): boolean {
    return this.#course.is !== 'within'
  }

  /** An interrupt was sent. */
  get isInterrupted(): boolean {
    return this.#course.is === 'interrupted'
  }

  /** An interrupt may be what a bound has come to: of this run, or of an earlier one. */
  get isBounded(): boolean {
    return this.#isBounded || this.#run.audit.interrupt !== undefined
  }

  /** Only the audit says that an earlier run began to interrupt the turn: this service does not show what clients send. */
  get isInterruptedByAudit(): boolean {
    return this.#earlierInterrupt !== undefined && !this.#showsClients
  }

  /** The interrupt of this turn that an earlier run began. */
  get #earlierInterrupt() {
    return this.#interruptShown === 'over' ? undefined : this.#run.audit.interrupt
  }

  /** The command that goes on with the session if nobody follows it any more. */
  resume(): string[] {
    return this.#run.resume(this.#until < Infinity)
  }

  /** A caller whose run is over, too, once a session that was interrupted is left alone. */
  over(caller: Caller): Caller {
    const deadline = () => this.#deadline
    return {
      ...caller,
      get deadline() {
        return deadline()
      },
    }
  }

  get #deadline(): number {
    return Math.min(this.#until, this.#run.caller.deadline)
  }

  /** Until when a session that is interrupted is waited for. */
  get #until(): number {
    const course = this.#course
    return course.is === 'interrupting' || course.is === 'interrupted' ? course.until : Infinity
  }

  /** The session came to rest, or was not followed to it: returns why that is a stop at a bound, or `error` if it is none. */
  async end(error?: unknown): Promise<unknown> {
    const wasInterrupting = this.#course.is === 'interrupting'
    await this.#giveUp()
    if (this.#failure) return this.#failure
    if (this.#isAtRest && this.#isShown && !this.#spending.isTold) {
      this.#spending.addSession(await this.#ask())
      this.#tell()
      this.#check()
    }
    const course = this.#course
    if (course.is === 'within') {
      this.#warnIfUnknown()
      return error
    }
    if (error instanceof CliError) {
      const { pending, problems, deadline } = error.details
      if (error.kind === 'waiting') return this.#stopped(course.why, { pending, problems })
      if (course.is === 'interrupted' && error.kind === 'stopped' && deadline) {
        return this.#stopped(
          `${course.why}; an interrupt was sent, and it has not come to rest: it may go on`,
        )
      }
      if (wasInterrupting && error.kind === 'stopped' && deadline) return this.#notTaken(course.why)
    }
    if (error !== undefined) return error
    return course.is === 'interrupted' ? this.#stopped(course.why) : undefined
  }

  /** The turn has ended by itself: warns of a bound that it is over. */
  tellExcess(): void {
    const course = this.#course
    if (course.is !== 'within') this.#run.context.warn(`${course.why}; the turn has ended by itself`)
  }

  /** What the run took, for a person; empty if that is not known. */
  describe(): string {
    return describeUsage(this.#spending.run)
  }

  close(): void {
    this.#cancelAsking()
    void this.#giveUp()
  }

  /** Nothing more is begun to interrupt the session, and what was begun has come to something. */
  async #giveUp(): Promise<void> {
    const course = this.#course
    if (course.is === 'reached' || course.is === 'interrupting') course.cancel?.()
    await this.#interrupting
  }

  /** Somebody looks at what it took, or it is bounded. */
  get #isShown(): boolean {
    const { host, flags } = this.#run.context
    return host.stderr.isTerminal || flags.report !== undefined || this.#isBounded
  }

  get #isBounded(): boolean {
    return this.#flags.maxCost !== undefined || this.#flags.maxTotalTokens !== undefined
  }

  #check(): void {
    const course = this.#course
    if (course.is === 'interrupting' && this.#isAtRest) course.cancel()
    if (course.is === 'interrupting' || course.is === 'interrupted') return
    const isReached = course.is === 'reached'
    const excesses = this.#excesses()
    const why = excesses[0] ?? (isReached ? course.why : undefined)
    if (why === undefined) return
    const cancel = isReached ? course.cancel : undefined
    if (this.#isAtRest) cancel?.()
    this.#course = { is: 'reached', why, cancel: this.#isAtRest ? undefined : (cancel ?? this.#wait()) }
  }

  /** Gives the session the time to come to rest before it is interrupted. */
  #wait(time = grace): () => void {
    return callAfter(this.#run.context.timers, time, () => {
      this.#interrupting = this.#interrupt()
    })
  }

  get #isAtRest(): boolean {
    return this.#follower?.state.stop !== undefined
  }

  /** Why the run is over its bounds, in words. */
  #excesses(): string[] {
    return [this.#excessOfTokens(), this.#excessOfCost()].filter((why) => why !== undefined)
  }

  #excessOfTokens(): string | undefined {
    const { tokens } = this.#spending.least
    const { maxTotalTokens } = this.#flags
    if (maxTotalTokens === undefined || tokens === undefined || tokens < maxTotalTokens) return undefined
    return `the run took ${this.#atLeast}${tokensInWords(tokens)}, and --max-total-tokens is ${maxTotalTokens}`
  }

  #excessOfCost(): string | undefined {
    const { cost } = this.#spending.least
    const { maxCost } = this.#flags
    if (maxCost === undefined || !cost) return undefined
    const { amount, isExact } = toMinor(maxCost, cost.currency)
    if (!isExact && !this.#isRounded)
      this.#run.context.note(`--max-cost ${maxCost} counts as ${formatMoney({ ...cost, amount })}`)
    this.#isRounded ||= !isExact
    if (cost.amount < amount) return undefined
    return `the run cost ${this.#atLeast}${formatMoney(cost)}, and --max-cost is ${maxCost}`
  }

  get #atLeast(): string {
    return this.#spending.isPartial ? 'at least ' : ''
  }

  /**
   * Posts one interrupt, unless the session came to rest, or the one that an earlier run began is shown or may still arrive. It
   * stands in the journal before.
   */
  async #interrupt(): Promise<void> {
    const { context, audit } = this.#run
    if (this.#course.is !== 'reached') return
    const { why } = this.#course
    if (this.#isAtRest) {
      this.#course = { is: 'reached', why, cancel: undefined }
      return
    }
    const until = context.timers.now() + longestEnd
    const earlier = this.#earlierInterrupt
    if (earlier) {
      if (this.#interruptShown === 'last') {
        context.note(`${why}: an earlier run has interrupted the session`)
        this.#course = { is: 'interrupted', why, until }
        return
      }
      const left = earlier.at + longestEnd - context.timers.date()
      if (left > 0) {
        context.note(`${why}: an earlier run began to interrupt the session, which may take 30 s`)
        this.#course = { is: 'reached', why, cancel: this.#wait(Math.min(left, longestEnd)) }
        return
      }
    }
    const unwanted = new AbortController()
    this.#course = { is: 'interrupting', why, until, cancel: () => unwanted.abort() }
    try {
      const rest = [...(this.#follower?.state.stops ?? [])].at(-1) ?? ''
      audit.add({ toolUse: null, event: 'interrupt', rest, reason: why })
      context.note(`${why}: the session is interrupted`)
      const refusal = await this.#post(unwanted.signal).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        return error
      })
      if (refusal) audit.add({ toolUse: null, event: 'refused', reason: refusal.message })
      this.#course = { is: 'interrupted', why, until }
      if (!refusal) return
      if (unwanted.signal.aborted) this.#course = { is: 'reached', why, cancel: undefined }
      else this.#failure = this.#notTaken(why, refusal)
    } catch (error) {
      this.#failure = error
    }
    if (!this.#failure) return
    this.#course = { is: 'interrupted', why, until: context.timers.now() }
    // Nothing more is waited for.
    this.#follower?.close()
  }

  #lookForTurn(event: SessionEvent): void {
    const { id, type } = event
    const shown = this.#interruptShown
    this.#showsClients ||= isOfClient(event)
    if (type === 'user.interrupt' && isOfMainThread(event)) this.#interruptShown = 'last'
    else if (shown === 'no' && id !== undefined && id === this.#run.audit.interrupt?.after)
      this.#interruptShown = 'begun'
    else if (shown === 'last' && isTask(event)) this.#interruptShown = 'over'
    else if ((shown === 'begun' || shown === 'last') && endsTurn(event)) this.#interruptShown = 'rested'
    else if (shown === 'rested' && isWork(event)) this.#interruptShown = 'over'
  }

  /** It is sent again only if it was certainly not taken, and is still wanted. Throws a `CliError` if it was not taken at all. */
  async #post(unwanted: AbortSignal): Promise<void> {
    const { context, caller, parts } = this.#run
    const body = Buffer.from('{"events":[{"type":"user.interrupt"}]}')
    const patient = {
      context,
      caller: { ...caller, deadline: this.#deadline },
      repeat: endpoints.sendEvents.repeat,
    }
    const quiet = { ...context, note() {} }
    const read = (response: Parameters<typeof readReceipt>[1]) =>
      readReceipt(quiet, response, { isPrinted: false, onAccepted() {} })
    for (let patience = freshPatience(context.timers.now()); ; ) {
      try {
        await caller.call(
          endpoints.sendEvents,
          { ...parts, body, isAside: true, isEndured: true, once: unwanted },
          read,
        )
        return
      } catch (error) {
        // What may have arrived shows by the rest.
        if (!(error instanceof CliError) || lineFor(error.details.fate) !== 'refused') return
        if (!unwanted.aborted)
          patience = await waitPatiently(patient, endure(patient, patience, error), unwanted)
        if (unwanted.aborted) throw error
      }
    }
  }

  #notTaken(why: string, { message }: Partial<CliError> = {}): CliError {
    const because = message === undefined ? '' : `: ${message}`
    return this.#stopped(`${why}; it goes on, since the interrupt was not taken${because}`)
  }

  #stopped(why: string, details: CliError['details'] = {}): CliError {
    // What waits for a reply does not go on by a message, but by the reply.
    const waits = this.#course.is === 'reached' && this.#follower?.state.stop?.kind === 'waiting'
    return new CliError('stopped', why, { sent: 'yes', nextCommand: this.#run.resume(!waits), ...details })
  }

  /** While the session works, until the run is over. */
  #askAgain(): void {
    this.#cancelAsking = callAfter(this.#run.context.timers, interval, async () => {
      this.#askAgain()
      if (this.#isAtRest || this.#course.is !== 'within') return
      this.#spending.addSession(await this.#ask())
      this.#tell()
      this.#check()
    })
  }

  /** What the service says that the session has used. */
  async #ask(): Promise<SessionUsage | undefined> {
    const session = await readSession(this.#run)
    return session && readUsage(session.usage)
  }

  /** Has the report, also one that a signal makes, say what is known by now. */
  #tell(): void {
    const { summary } = this.#run.context
    const { run, session } = this.#spending
    summary.usage = new Map(Object.entries(run.tokens ?? {}))
    summary.cost = run.cost
    summary.sessionUsage = session.tokens && new Map(Object.entries(session.tokens))
    summary.sessionCost = session.cost
  }

  #warnIfUnknown(): void {
    const { maxCost, maxTotalTokens } = this.#flags
    const { tokens, cost } = this.#spending.run
    if (!this.#spending.hasRun) return
    const unknown = [
      ...(maxTotalTokens !== undefined && typeof tokens?.totalTokens !== 'number'
        ? ['--max-total-tokens']
        : []),
      ...(maxCost !== undefined && !cost ? ['--max-cost'] : []),
    ]
    if (unknown.length === 0) return
    const what = unknown.length > 1 ? 'uses and costs' : maxCost !== undefined && !cost ? 'costs' : 'uses'
    this.#run.context.warn(
      `${unknown.join(' and ')} cannot be kept: the service does not tell what the run ${what}`,
    )
  }
}

/** Whether the session says that its work is done. One that waits for replies may go on with the same turn. */
function endsTurn(event: SessionEvent): boolean {
  if (event.type !== 'session.status_idle') return false
  const { type = 'requires_action', eventIds = [] } = readStopReason(event)
  return type !== 'requires_action' && eventIds.length === 0
}
