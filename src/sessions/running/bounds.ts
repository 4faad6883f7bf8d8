import type { Deadline } from '../../deadline.ts'
import { isCertainlyUnaccepted } from '../../delivery-state.ts'
import { CliError } from '../../errors.ts'
import { retry } from '../../http/retry.ts'
import { schedule } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import type { Follower } from '../following/follower.ts'
import { describeRun } from '../following/incidents.ts'
import { readSession } from '../read-session.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionParts } from '../session.ts'
import { budgetCommand } from '../session-command.ts'
import { describeUsage } from '../usage-text.ts'
import { Budget, hasLimits, type LimitFlags } from './budget.ts'
import type { SessionRun } from './way-on.ts'

/** Interval of queries for the usage of a session, if the run has a limit. Not all services send usage events. */
const queryIntervalMs = 10_000

/** Maximum number of open workflow runs named in a warning. */
const mostNamedRuns = 10

const interrupt = { type: 'user.interrupt' }

/** Maximum time until a session becomes idle: by itself, and after an interrupt. */
const [grace, longestEnd] = [1000, 30_000]

/**
 * Reads the usage of a run for the report, and interrupts the session at a limit: once, if it does not become
 * idle by itself. `WayOn.interrupt` has the state.
 */
export class Bounds {
  readonly #run: SessionRun
  readonly #budget: Budget
  readonly #asksAgain: boolean
  /** The usage is displayed or limited. */
  readonly #isShown: boolean
  #follower: Follower | undefined
  #isRoundingTold = false
  #cancelAsking = () => {}
  /** The exceeded limit, in words. */
  #excess = ''
  /** The last attempt to interrupt the session. */
  #attempt = Promise.resolve()
  /** Passes if the current attempt is not wanted any more. */
  #end: Deadline | undefined
  #failure: unknown
  /** Parts of the run's requests. Their deadline passes when an interrupted session had enough time. */
  readonly parts: SessionParts

  constructor(run: SessionRun, flags: LimitFlags) {
    this.#run = run
    this.parts = { ...run.parts, deadline: run.parts.deadline.narrow() }
    this.#budget = new Budget(flags)
    this.#asksAgain = hasLimits(flags)
    const { context } = run
    this.#isShown = context.host.stderr.isTerminal || context.flags.report !== undefined || hasLimits(flags)
  }

  addPast(items: readonly EventItem[]): void {
    for (const { event } of items) this.#budget.add(event)
  }

  /** Called before the run sends its task, or continues the session without one. */
  async begin(hasTask: boolean): Promise<void> {
    this.#budget.begin(hasTask)
    if (this.#isShown && this.#budget.lacksBase) this.#budget.addBase(await this.#ask())
  }

  /**
   * From now on the usage of the session is the run's. Before the task is sent, the session may work for
   * another client.
   */
  follow(follower: Follower): void {
    this.#follower = follower
    this.#tell()
    if (this.#asksAgain) this.#askAgain()
  }

  add(items: readonly EventItem[]): void {
    this.addPast(items)
    this.#check()
  }

  /**
   * Called when the session is idle, or `error` ended the run. Returns the stop at a limit, otherwise
   * `error`.
   */
  async end(error: unknown): Promise<unknown> {
    this.#giveUp()
    await this.#attempt
    if (this.#isAtRest && this.#isShown && !this.#budget.isTold) await this.#askAndCheck()
    const { lack } = this.#budget
    if (!this.#run.wayOn.isBounded && lack !== undefined) this.#run.context.warn(lack)
    if (this.#run.wayOn.isBounded) this.#warnOfOpenRuns()
    return this.#stopOf(error)
  }

  /** An interrupt ends no workflow run (public clients, 10). */
  #warnOfOpenRuns(): void {
    const { context, parts } = this.#run
    const runs = this.#follower?.state.openRuns ?? []
    if (runs.length === 0) return
    const { cost } = this.#budget.session
    const command = cost ? `: ${budgetCommand(context, parts.params.session, cost)}` : ''
    const names = runs.slice(0, mostNamedRuns).map(describeRun)
    const more = runs.length > names.length ? ` and ${runs.length - names.length} more` : ''
    context.warn(
      `these workflow runs are open and may continue to spend: ${names.join(', ')}${more}; only the session's budget pauses them${command}`,
    )
  }

  /** Warns about the limit after a turn that ended by itself. */
  warnOfExcess(): void {
    if (this.#run.wayOn.isBounded) this.#run.context.warn(`${this.#excess}; the turn has ended by itself`)
  }

  /** Formats the usage of the run; empty if unknown. */
  describe(): string {
    return describeUsage(this.#budget.run)
  }

  close(): void {
    this.#cancelAsking()
    this.#giveUp()
  }

  get #isAtRest(): boolean {
    return this.#follower?.state.stop !== undefined
  }

  #askAgain(): void {
    this.#cancelAsking = schedule(this.#run.context.timers, queryIntervalMs, async () => {
      this.#askAgain()
      if (!this.#isAtRest && !this.#run.wayOn.isBounded) await this.#askAndCheck()
    })
  }

  async #askAndCheck(): Promise<void> {
    this.#budget.addSession(await this.#ask())
    this.#check()
  }

  async #ask(): Promise<SessionUsage | undefined> {
    const session = await readSession(this.#run)
    return session && readUsage(session.usage)
  }

  #check(): void {
    const { rounding } = this.#budget
    if (rounding !== undefined && !this.#isRoundingTold) this.#run.context.note(rounding)
    this.#isRoundingTold ||= rounding !== undefined
    this.#tell()
    this.#interruptAtBound()
  }

  /** Updates the report, which a signal may write at any time. */
  #tell(): void {
    const { figures } = this.#run.context.summary
    figures.run = this.#budget.run
    figures.session = this.#budget.session
  }

  #interruptAtBound(): void {
    const { wayOn } = this.#run
    if (wayOn.interrupt === 'sent') return
    this.#excess = this.#budget.exceeded() ?? this.#excess
    if (this.#excess === '') return
    if (wayOn.interrupt === 'unwanted') wayOn.interrupt = 'wanted'
    if (this.#isAtRest) this.#giveUp()
    else this.#end ??= this.#begin()
  }

  #begin(): Deadline {
    const end = this.parts.deadline.narrow(Infinity, 'the session became idle')
    this.#attempt = this.#attempt.then(() => this.#interrupt(end))
    return end
  }

  /** Ends the attempt: the session is idle, or the run ends. If the session works again, another one begins. */
  #giveUp(): void {
    this.#end?.pass()
    this.#end = undefined
  }

  /**
   * Posts one interrupt, unless the session becomes idle, or the list shows an interrupt of an earlier run,
   * or that one may still arrive.
   */
  async #interrupt(end: Deadline): Promise<void> {
    const { audit, context, wayOn } = this.#run
    const { note, timers } = context
    const earlier = audit.interrupt
    for (let wait = grace; wait > 0; ) {
      await end.wait(Math.min(wait, longestEnd))
      if (end.hasPassed || wayOn.interrupt === 'sent') return
      if (this.#isAtRest) return this.#giveUp()
      if (earlier === undefined) break
      if (this.#follower?.turn.isInterrupted) {
        note(`${this.#excess}: an earlier run has interrupted the session`)
        this.parts.deadline.moveTo(timers.now() + longestEnd)
        wayOn.interrupt = 'sent'
        return
      }
      wait = earlier + longestEnd - timers.wallTime()
      if (wait > 0)
        note(`${this.#excess}: an earlier run began to interrupt the session, which may take 30 s`)
    }
    wayOn.interrupt = 'posting'
    this.parts.deadline.moveTo(timers.now() + longestEnd)
    try {
      audit.add({ toolUse: null, event: 'interrupt', reason: this.#excess })
      note(`${this.#excess}: the session is interrupted`)
      const refusal = await this.#post(end)
      if (refusal) {
        audit.add({ toolUse: null, event: 'refused', reason: refusal.message })
        if (this.#end === end) throw this.#notTaken(refusal)
        this.parts.deadline.moveTo(Infinity)
        wayOn.interrupt = 'wanted'
        return
      }
    } catch (error) {
      this.#failure = error
      this.parts.deadline.pass()
      this.#follower?.close()
    }
    wayOn.interrupt = 'sent'
  }

  /**
   * Posts until the service may have accepted the interrupt, or the session is idle. Returns why the service
   * certainly did not accept it.
   */
  async #post(end: Deadline): Promise<CliError | undefined> {
    const { context, caller } = this.#run
    const parts = { ...this.parts, deadline: end, isSingle: true }
    const body = Buffer.from(JSON.stringify({ events: [interrupt] }))
    const request = { ...parts, body }
    const post = async () => {
      try {
        await caller.call(endpoints.sendEvents, request, (response) => readReceipt(context, response))
        this.#follower?.addAccepted(interrupt)
        this.#follower?.wake()
      } catch (error) {
        // If the interrupt may have arrived, the next idle event shows it.
        if (!(error instanceof CliError) || isCertainlyUnaccepted(error.details.delivery)) throw error
      }
      return undefined
    }
    const { repeat } = endpoints.sendEvents
    return retry(end, new ReconnectPolicy({ context, caller, parts }, repeat), post).catch((error) => {
      if (error instanceof CliError) return error
      throw error
    })
  }

  #stopOf(error: unknown): unknown {
    if (this.#failure) return this.#failure
    const { interrupt } = this.#run.wayOn
    if (interrupt === 'unwanted') return error
    if (error === undefined) return interrupt === 'sent' ? this.#stopped() : undefined
    if (!(error instanceof CliError)) return error
    const { pending, problems, deadline } = error.details
    if (error.kind === 'waiting') return this.#stopped('', { pending, problems })
    if (error.kind !== 'stopped' || !deadline) return error
    if (interrupt !== 'sent') return this.#notTaken()
    return this.#stopped('; an interrupt was sent, and it has not come to rest: it may go on')
  }

  #notTaken(refusal?: CliError): CliError {
    const because = refusal ? `: ${refusal.message}` : ''
    return this.#stopped(`; it goes on, since the interrupt was not taken${because}`)
  }

  #stopped(more = '', details: CliError['details'] = {}): CliError {
    const { wayOn } = this.#run
    // A session that waits for a reply continues after the reply, not after a message.
    const waits = wayOn.interrupt === 'wanted' && this.#follower?.state.stop?.kind === 'waiting'
    const resume = waits ? wayOn.asItStands() : wayOn.byMessage()
    // A program that resumed at once would spend without an end.
    return new CliError('stopped', `${this.#excess}${more}`, {
      sent: 'yes',
      retry: 'never',
      resume,
      ...details,
    })
  }
}
