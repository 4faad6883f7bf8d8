import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { callAfter } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { Follower } from '../following/follower.ts'
import { endure, freshPatience, waitPatiently } from '../patience.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionAccess } from '../session.ts'
import type { Audit } from './audit.ts'
import { lineFor } from './replying.ts'
import type { WayOn } from './way-on.ts'

/**
 * Whether the session is interrupted, since the run is over a bound.
 *
 *   - `unwanted`: the run is within its bounds
 *   - `wanted`: it is not, and nothing more is begun. If the session works, a timer runs: it may come to rest by itself
 *   - `posting`: it did not. The interrupt is in the journal, and is posted until the service may have taken it. If the
 *     session rests before that, posting is given up, and the interrupt is `wanted` again
 *   - `sent`: the service may have taken it, or there is nothing more to do
 */
type Course =
  | { is: 'unwanted' }
  | { is: 'wanted'; cancel: (() => void) | undefined }
  | { is: 'posting'; until: number; cancel(): void }
  | { is: 'sent'; until: number }

/** How long a session may take to come to rest: by itself, and after an interrupt. Milliseconds. */
const [grace, longestEnd] = [1000, 30_000]

/** Interrupts a session, once, if it does not come to rest by itself. */
export class SessionInterrupt {
  readonly #session: SessionAccess
  readonly #audit: Audit
  readonly #wayOn: WayOn
  #follower: Follower | undefined
  #now: Course = { is: 'unwanted' }
  /** Which bound the run is over, in words. */
  #why = ''
  #failure: unknown
  /** The last attempt to interrupt the session. */
  #attempt = Promise.resolve()

  constructor(session: SessionAccess, audit: Audit, wayOn: WayOn) {
    this.#session = session
    this.#audit = audit
    this.#wayOn = wayOn
  }

  /** The caller of the run, which has no time any more once an interrupted session was waited for long enough. */
  get caller(): Caller {
    const { caller } = this.#session
    const deadline = () => this.#deadline
    return {
      ...caller,
      get deadline() {
        return deadline()
      },
    }
  }

  follow(follower: Follower): void {
    this.#follower = follower
  }

  /** The run is over a bound: nothing more may be begun. */
  get isWanted(): boolean {
    return this.#now.is !== 'unwanted'
  }

  /** The session shows none, but by the audit an earlier run began one for this task: some services do not show it. */
  get isOnlyInAudit(): boolean {
    return this.#audit.interrupt !== undefined && this.#follower?.turn.showsClients === false
  }

  /** News came, and perhaps a reason to interrupt the session: it has a moment to come to rest by itself. */
  update(excess: string | undefined): void {
    const now = this.#now
    if (now.is === 'posting' && this.#isAtRest) now.cancel()
    if (now.is === 'posting' || now.is === 'sent') return
    if (now.is === 'unwanted' && excess === undefined) return
    this.#why = excess ?? this.#why
    const cancel = now.is === 'wanted' ? now.cancel : undefined
    if (this.#isAtRest) cancel?.()
    this.#become({ is: 'wanted', cancel: this.#isAtRest ? undefined : (cancel ?? this.#startTimer()) })
  }

  /** Begins nothing more, and waits until the attempt has an outcome. */
  async giveUp(): Promise<void> {
    if (this.#now.is === 'wanted' || this.#now.is === 'posting') this.#now.cancel?.()
    await this.#attempt
  }

  /** The run ends, with `error` or at a rest. Returns the stop at a bound that this is, else `error`. */
  stopOf(error: unknown): unknown {
    if (this.#failure) return this.#failure
    const now = this.#now
    if (now.is === 'unwanted') return error
    if (error === undefined) return now.is === 'sent' ? this.#stopped() : undefined
    if (!(error instanceof CliError)) return error
    const { pending, problems, deadline } = error.details
    if (error.kind === 'waiting') return this.#stopped('', { pending, problems })
    if (error.kind !== 'stopped' || !deadline) return error
    if (now.is !== 'sent') return this.#notTaken()
    return this.#stopped('; an interrupt was sent, and it has not come to rest: it may go on')
  }

  /** The turn ended by itself: warns of the bound. */
  warnOfExcess(): void {
    if (this.#now.is !== 'unwanted') this.#session.context.warn(`${this.#why}; the turn has ended by itself`)
  }

  #become(course: Course): void {
    this.#now = course
    this.#wayOn.interrupt = course.is
  }

  get #deadline(): number {
    return Math.min('until' in this.#now ? this.#now.until : Infinity, this.#session.caller.deadline)
  }

  get #isAtRest(): boolean {
    return this.#follower?.state.stop !== undefined
  }

  #startTimer(time = grace): () => void {
    return callAfter(this.#session.context.timers, time, () => {
      this.#attempt = this.#interrupt()
    })
  }

  /** Posts one interrupt, unless the session came to rest, or one of an earlier run is shown or may still arrive. */
  async #interrupt(): Promise<void> {
    const { note, timers } = this.#session.context
    if (this.#now.is !== 'wanted') return
    const why = this.#why
    if (this.#isAtRest) return this.#become({ is: 'wanted', cancel: undefined })
    const until = timers.now() + longestEnd
    const earlier = this.#audit.interrupt
    if (earlier !== undefined && this.#follower?.turn.isInterrupted) {
      note(`${why}: an earlier run has interrupted the session`)
      return this.#become({ is: 'sent', until })
    }
    const left = earlier === undefined ? 0 : earlier + longestEnd - timers.date()
    if (left > 0) {
      note(`${why}: an earlier run began to interrupt the session, which may take 30 s`)
      return this.#become({ is: 'wanted', cancel: this.#startTimer(Math.min(left, longestEnd)) })
    }
    const unwanted = new AbortController()
    this.#become({ is: 'posting', until, cancel: () => unwanted.abort() })
    try {
      this.#audit.add({ toolUse: null, event: 'interrupt', reason: why })
      note(`${why}: the session is interrupted`)
      const refusal = await this.#post(unwanted.signal)
      if (!refusal) return this.#become({ is: 'sent', until })
      this.#audit.add({ toolUse: null, event: 'refused', reason: refusal.message })
      if (unwanted.signal.aborted) return this.#become({ is: 'wanted', cancel: undefined })
      this.#failure = this.#notTaken(refusal)
    } catch (error) {
      this.#failure = error
    }
    this.#become({ is: 'sent', until: timers.now() })
    this.#follower?.close()
  }

  /**
   * Posts until the service may have taken it, or nobody wants it. Returns why the service certainly did not take it.
   */
  async #post(unwanted: AbortSignal): Promise<CliError | undefined> {
    const { context, caller, parts } = this.#session
    const body = Buffer.from('{"events":[{"type":"user.interrupt"}]}')
    const request = { ...parts, body, isAside: true, isEndured: true, once: unwanted }
    const patient = {
      context,
      caller: { ...caller, deadline: this.#deadline },
      repeat: endpoints.sendEvents.repeat,
    }
    const quiet = { ...context, note() {} }
    for (let patience = freshPatience(context.timers.now()); ; ) {
      try {
        await caller.call(endpoints.sendEvents, request, (response) =>
          readReceipt(quiet, response, { isPrinted: false, onAccepted() {} }),
        )
        return undefined
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        // If it may have arrived, the session's rest shows it.
        if (lineFor(error.details.fate) !== 'refused') return undefined
        try {
          if (!unwanted.aborted)
            patience = await waitPatiently(patient, endure(patient, patience, error), unwanted)
        } catch (end) {
          if (end instanceof CliError) return end
          throw end
        }
        if (unwanted.aborted) return error
      }
    }
  }

  #notTaken(refusal?: CliError): CliError {
    const because = refusal ? `: ${refusal.message}` : ''
    return this.#stopped(`; it goes on, since the interrupt was not taken${because}`)
  }

  #stopped(more = '', details: CliError['details'] = {}): CliError {
    // A session that waits for a reply resumes by the reply, and not by a message.
    const waits = this.#now.is === 'wanted' && this.#follower?.state.stop?.kind === 'waiting'
    const nextCommand = waits ? this.#wayOn.asItStands() : this.#wayOn.byMessage()
    return new CliError('stopped', `${this.#why}${more}`, { sent: 'yes', nextCommand, ...details })
  }
}
