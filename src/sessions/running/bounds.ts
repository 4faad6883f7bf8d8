import { tokensInWords } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { formatMoney, toMinor } from '../../io/money.ts'
import { callAfter } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { readBody } from '../../wire/exchange.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { isOfMainThread } from '../following/followed-turn.ts'
import type { Follower } from '../following/follower.ts'
import { endure, freshPatience, waitPatiently } from '../patience.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionParts } from '../session.ts'
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

/** They hold for one run only. */
export const boundFlags = ['--max-total-tokens', '--max-cost']

/** What a run works with. */
export interface BoundedRun {
  context: Context
  /** For requests about the session, of which nothing is printed. */
  caller: Caller
  parts: SessionParts & Pick<RequestParts, 'isEndured'>
  audit: Audit
  /** The command that goes on after a bound, with a new message. */
  resume: string[]
}

/**
 * Whether the run is within its bounds. `reached`: a usage said that it is not, and nothing is replied to any more; while
 * the session works a timer runs, since it may come to rest by itself. `interrupted`: it did not, so an interrupt is in the
 * journal, and is posted once.
 */
type BoundsCourse =
  | { is: 'within' }
  | { is: 'reached'; why: string; cancel: (() => void) | undefined }
  | { is: 'interrupted'; why: string; until: number }

/** How long a session may take to come to rest: by itself, and when it was interrupted. Milliseconds. */
const [grace, longestEnd] = [1000, 30_000]

/** How often a session that works is asked what it costs, and how long an answer may take. Milliseconds. */
const [interval, longestAnswer] = [30_000, 5000]

/** What a run uses, as it is told, and the bounds at which it is stopped. */
export class Bounds {
  readonly #run: BoundedRun
  readonly #flags: BoundFlags
  readonly #spending = new Spending()
  #follower: Follower | undefined
  #course: BoundsCourse = { is: 'within' }
  #failure: unknown
  #isRounded = false
  /** What the session shows of its last interrupt: it is `over` once another turn was begun. */
  #shownInterrupt: 'none' | 'last' | 'over' = 'none'
  #cancelAsking = () => {}

  constructor(run: BoundedRun, flags: BoundFlags) {
    this.#run = run
    this.#flags = flags
  }

  addPast(items: readonly EventItem[]): void {
    for (const { event } of items) {
      this.#spending.addPast(event)
      this.#lookForTurn(event)
    }
  }

  /** A task is about to be sent. */
  async begin(): Promise<void> {
    this.#spending.begin()
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
    const { deadline } = this.#run.caller
    return this.#course.is === 'interrupted' ? Math.min(this.#course.until, deadline || Infinity) : deadline
  }

  /** The session came to rest, or was not followed to it: returns why that is a stop at a bound, or `error` if it is none. */
  async end(error?: unknown): Promise<unknown> {
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
        return this.#stopped(`${course.why}; it was interrupted, and has not come to rest: it may go on`)
      }
    }
    if (error !== undefined) return error
    if (course.is === 'interrupted') return this.#stopped(course.why)
    this.#run.context.warn(`${course.why}; the turn has ended by itself`)
    return undefined
  }

  /** What the run took, for a person; empty if that is not known. */
  describe(): string {
    return describeUsage(this.#spending.run)
  }

  close(): void {
    this.#cancelAsking()
    if (this.#course.is === 'reached') this.#course.cancel?.()
  }

  /** Why nothing more may be sent, after a bound. */
  refusal(): CliError | undefined {
    return this.#course.is === 'within' ? undefined : this.#stopped(this.#course.why)
  }

  /** Somebody looks at what it took, or it is bounded. */
  get #isShown(): boolean {
    const { host, flags } = this.#run.context
    const isReported = flags.given.some(({ flag }) => flag === '--report')
    return host.stderr.isTerminal || isReported || this.#isBounded
  }

  get #isBounded(): boolean {
    return this.#flags.maxCost !== undefined || this.#flags.maxTotalTokens !== undefined
  }

  #check(): void {
    const course = this.#course
    if (course.is === 'interrupted') return
    const isReached = course.is === 'reached'
    const why = this.#excess() ?? (isReached ? course.why : undefined)
    if (why === undefined) return
    const cancel = isReached ? course.cancel : undefined
    if (this.#isAtRest) cancel?.()
    this.#course = { is: 'reached', why, cancel: this.#isAtRest ? undefined : (cancel ?? this.#wait()) }
  }

  /** Gives the session the time to come to rest by itself. */
  #wait(): () => void {
    return callAfter(this.#run.context.timers, grace, () => void this.#interrupt())
  }

  get #isAtRest(): boolean {
    return this.#follower?.state.stop !== undefined
  }

  /** In which way the run is over its bounds, in words. */
  #excess(): string | undefined {
    const { tokens, cost } = this.#spending.least
    const { maxTotalTokens, maxCost } = this.#flags
    if (maxTotalTokens !== undefined && tokens !== undefined && tokens >= maxTotalTokens)
      return `the run took ${this.#atLeast}${tokensInWords(tokens)}, and --max-total-tokens is ${maxTotalTokens}`
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

  /** Posts one interrupt, unless the session came to rest or an earlier run began to. It stands in the journal before. */
  async #interrupt(): Promise<void> {
    const { context, audit } = this.#run
    if (this.#course.is !== 'reached') return
    const { why } = this.#course
    if (this.#isAtRest) {
      this.#course = { is: 'reached', why, cancel: undefined }
      return
    }
    this.#course = { is: 'interrupted', why, until: context.timers.now() + longestEnd }
    if (audit.isInterrupted && this.#shownInterrupt !== 'over') {
      context.note(`${why}: an earlier run has interrupted the session, by the audit`)
      return
    }
    try {
      audit.add({ toolUse: null, event: 'interrupt', reason: why })
      context.note(`${why}: the session is interrupted`)
      await this.#post().catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        this.#failure = this.#stopped(
          `${why}; it goes on, since the interrupt was not taken: ${error.message}`,
        )
        audit.add({ toolUse: null, event: 'refused', reason: error.message })
      })
    } catch (error) {
      this.#failure = error
    }
    if (!this.#failure) return
    this.#course = { is: 'interrupted', why, until: context.timers.now() }
    // Nothing more is waited for.
    this.#follower?.close()
  }

  #lookForTurn(event: SessionEvent): void {
    const { type } = event
    if (type === 'user.interrupt' && isOfMainThread(event)) this.#shownInterrupt = 'last'
    const isTurn = type === 'user.message' || type === 'user.define_outcome'
    if (isTurn && this.#shownInterrupt === 'last') this.#shownInterrupt = 'over'
  }

  /** It is sent again only if it was certainly not taken. Throws a `CliError` if it was not taken at all. */
  async #post(): Promise<void> {
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
        await caller.call(endpoints.sendEvents, { ...parts, body, isAside: true }, read)
        return
      } catch (error) {
        // What may have arrived shows by the rest.
        if (!(error instanceof CliError) || lineFor(error.details.fate) !== 'refused') return
        patience = await waitPatiently(patient, endure(patient, patience, error))
      }
    }
  }

  #stopped(why: string, details: CliError['details'] = {}): CliError {
    return new CliError('stopped', why, { sent: 'yes', resume: this.#run.resume, ...details })
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

  /** What the service says that the session has used. It need not know, and is not waited for long. */
  async #ask(): Promise<SessionUsage | undefined> {
    const { context, caller, parts } = this.#run
    const late = new AbortController()
    const given = new Promise<undefined>((resolve) => {
      late.signal.addEventListener('abort', () => resolve(undefined))
    })
    const cancel = callAfter(context.timers, longestAnswer, () => late.abort())
    const asked = caller
      .call(endpoints.readSession, { ...parts, isAside: true, once: late.signal }, async (response) => {
        const session = tryParseJson(Buffer.from(await readBody(response.body, longestSession)).toString())
        return isObject(session) ? readUsage(session.usage) : undefined
      })
      .catch(() => undefined)
    try {
      // What comes before the request, as a command that prints the secret, may go on.
      return await Promise.race([asked, given])
    } finally {
      cancel()
    }
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

/** Bytes. */
const longestSession = 2 ** 20
