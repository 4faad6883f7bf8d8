import type { Deadline } from '../../deadline.ts'
import { CliError } from '../../errors.ts'
import { retry } from '../../http/retry.ts'
import { schedule } from '../../timers.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import type { Follower } from '../following/follower.ts'
import { describeRun } from '../following/incidents.ts'
import { readSession } from '../read-session.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { formatBudgetCommand } from '../session-command.ts'
import { describeUsage } from '../usage-text.ts'
import type { Budget } from './budget.ts'
import { postOnce, resolveDoubt } from './posting.ts'
import type { InterruptState, SessionRun } from './resumption.ts'

/** Interval of queries for the usage of a session, if the run has a limit. Not all services send usage events. */
const queryIntervalMs = 10_000

/** Maximum number of open workflow runs named in a warning. */
const maxNamedRuns = 10

const interrupt = { type: 'user.interrupt' }

/** Text of the failure if the deadline of a run passes after an interrupt. */
export const notIdleText = 'the session did not become idle within 30 s of the interrupt'

/** Time in which a session should become idle: by itself, and after an interrupt. */
const [graceMs, maxInterruptMs] = [1000, 30_000]

/**
 * Reads the usage of a run for the report, and enforces its limits. If the session does not become idle by
 * itself at a limit, it is interrupted once. The run then ends at the latest 30 s after the interrupt.
 */
export class Bounds {
  readonly #run: SessionRun
  readonly #follower: Follower
  readonly #budget: Budget
  interrupt: InterruptState = 'unwanted'
  #cancelQuery = () => {}
  /** Description of the exceeded limit. */
  #excess = ''
  /** The last attempt to interrupt the session. */
  #attempt = Promise.resolve()
  /** Deadline of the current attempt. The attempt ends when this deadline passes. */
  #end: Deadline | undefined
  #failure: unknown
  /** The interrupt was sent, and it is unknown whether the service accepted it. */
  #isInDoubt = false

  constructor(run: SessionRun, follower: Follower, budget: Budget) {
    this.#run = run
    this.#follower = follower
    this.#budget = budget
  }

  /** Called before the run sends its task, or before it continues the session without a task. */
  async begin(hasTask: boolean): Promise<void> {
    this.#budget.begin(hasTask)
    if (this.#isShown && this.#budget.lacksBase) this.#budget.addBase(await this.#queryUsage())
  }

  /**
   * Starts to count the session's usage as the run's. Called after the task is sent, because before that the
   * session may work for another client.
   */
  follow(): void {
    this.#updateReport()
    if (this.#budget.hasLimits) this.#scheduleQuery()
  }

  add(items: readonly EventItem[]): void {
    for (const { event } of items) this.#budget.add(event)
    this.#check()
  }

  /**
   * Called when the session is idle, or when `error` has ended the run. Returns the failure for an exceeded
   * limit, otherwise `error`.
   */
  async end(error: unknown): Promise<unknown> {
    this.#cancelInterrupt()
    await this.#attempt
    if (this.#isStopped && this.#isShown && !this.#budget.hasSessionUsage) await this.#queryAndCheck()
    const { unenforceable } = this.#budget
    if (!this.#isExceeded && unenforceable !== undefined) this.#run.context.messages.warn(unenforceable)
    if (this.#isExceeded) this.#warnOfOpenRuns()
    return this.#findStop(error)
  }

  /** Warns of open workflow runs, because an interrupt does not end them. */
  #warnOfOpenRuns(): void {
    const { context, parts } = this.#run
    const runs = this.#follower.state.openRuns
    if (runs.length === 0) return
    const { cost } = this.#budget.session
    const command = cost
      ? `; to pause them until you raise it: ${formatBudgetCommand(context, parts.params.session, cost)}`
      : ''
    const names = runs.slice(0, maxNamedRuns).map(describeRun)
    const more = runs.length > names.length ? ` and ${runs.length - names.length} more` : ''
    context.messages.warn(
      `these workflow runs are open and may continue to spend: ${names.join(', ')}${more}; only the session's budget pauses them${command}`,
    )
  }

  /** Warns about the limit after a turn that ended by itself. */
  warnOfExcess(): void {
    if (this.#isExceeded)
      this.#run.context.messages.warn(`${this.#updateExcess()}; the turn has ended by itself`)
  }

  /** Formats the usage of the run; empty if unknown. */
  describe(): string {
    return describeUsage(this.#budget.run)
  }

  close(): void {
    this.#cancelQuery()
    this.#cancelInterrupt()
  }

  get #isExceeded(): boolean {
    return this.interrupt !== 'unwanted'
  }

  get #isStopped(): boolean {
    return this.#follower.state.stop !== undefined
  }

  /** The usage is displayed or limited. */
  get #isShown(): boolean {
    const { host, flags } = this.#run.context
    return host.stderr.isTerminal || flags.report !== undefined || this.#budget.hasLimits
  }

  #scheduleQuery(): void {
    this.#cancelQuery = schedule(this.#run.context.host.timers, queryIntervalMs, async () => {
      this.#scheduleQuery()
      if (!this.#isStopped && !this.#isExceeded) await this.#queryAndCheck()
    })
  }

  async #queryAndCheck(): Promise<void> {
    this.#budget.addSession(await this.#queryUsage())
    this.#check()
  }

  async #queryUsage(): Promise<SessionUsage | undefined> {
    const session = await readSession(this.#run)
    return session && readUsage(session.usage)
  }

  #check(): void {
    this.#updateReport()
    this.#interruptAtLimit()
  }

  /** Updates the report, which a signal may write at any time. */
  #updateReport(): void {
    const { figures } = this.#run.context.summary
    figures.run = this.#budget.run
    figures.session = this.#budget.session
  }

  /** Describes the exceeded limit with the newest usage. Returns an empty text if no limit is exceeded. */
  #updateExcess(): string {
    this.#excess = this.#budget.findExceededLimit() ?? this.#excess
    return this.#excess
  }

  #interruptAtLimit(): void {
    if (this.interrupt === 'sent') return
    if (this.#updateExcess() === '') return
    if (this.interrupt === 'unwanted') this.interrupt = 'wanted'
    if (this.#isStopped) this.#cancelInterrupt()
    else this.#end ??= this.#startInterrupt()
  }

  #startInterrupt(): Deadline {
    const end = this.#run.parts.deadline.narrow(Infinity, 'the session became idle')
    this.#attempt = this.#attempt.then(() => this.#interrupt(end))
    return end
  }

  /**
   * Ends the attempt, because the session is idle, or the run ends. If the session works again, another
   * attempt begins.
   */
  #cancelInterrupt(): void {
    this.#end?.pass()
    this.#end = undefined
  }

  /**
   * Posts an interrupt, unless the session becomes idle, the list contains an interrupt of an earlier run, or
   * such an interrupt may still arrive.
   */
  async #interrupt(end: Deadline): Promise<void> {
    const { audit, context, parts } = this.#run
    await end.wait(graceMs)
    const isKnown = audit.interrupt !== undefined && (await this.#findEarlier(audit.interrupt, end))
    if (end.hasPassed || this.interrupt === 'sent') return
    if (this.#isStopped) return this.#cancelInterrupt()
    parts.deadline.moveTo(context.host.timers.now() + maxInterruptMs)
    if (isKnown) {
      context.messages.note(`${this.#excess}: an earlier run has interrupted the session`)
      this.interrupt = 'sent'
      return
    }
    try {
      await this.#post(end)
      this.interrupt = 'sent'
    } catch (error) {
      const refusal = error instanceof CliError && error.kind !== 'file' ? error : undefined
      this.interrupt = 'wanted'
      // The session became idle meanwhile.
      if (refusal && this.#end !== end) return this.#run.parts.deadline.moveTo(Infinity)
      this.#failure = refusal ? this.#createRefusedInterruptError(refusal) : error
      this.#run.parts.deadline.pass()
      this.#follower.close()
    }
  }

  /**
   * Returns whether the list contains the interrupt of an earlier run. Waits until that interrupt must have
   * arrived: 30 s after `sentAt`, a wall-clock time.
   */
  async #findEarlier(sentAt: number, end: Deadline): Promise<boolean> {
    const { context, parts } = this.#run
    const leftMs = sentAt + maxInterruptMs - context.host.timers.wallTime()
    const access = { ...this.#run, parts: { ...parts, deadline: end } }
    const isShown = await resolveDoubt(access, {
      // The follower reads the list, so `list` is not needed.
      read: async () => this.#follower.task.isInterrupted || undefined,
      // The time is unknown if another program has changed the audit.
      maxMs: Math.min(Number.isNaN(leftMs) ? 0 : leftMs, maxInterruptMs),
      whenWaiting: () =>
        context.messages.note(
          `${this.#excess}: an earlier run began to interrupt the session, which may take 30 s`,
        ),
    })
    return isShown === true
  }

  /**
   * Posts the interrupt until the service may have accepted it. Throws a `CliError` if the service certainly
   * did not accept it, or if the session becomes idle first.
   */
  async #post(end: Deadline): Promise<void> {
    const { audit, context } = this.#run
    const access = { ...this.#run, parts: { ...this.#run.parts, deadline: end } }
    const body = Buffer.from(JSON.stringify({ events: [interrupt] }))
    await retry(end, new ReconnectPolicy(access), async () => {
      const { is, failure } = await postOnce(access, body, {
        record: (event, reason) => {
          if (event === 'refused') audit.add({ toolUse: null, event, reason })
          if (event !== 'sent') return
          audit.add({ toolUse: null, event: 'interrupt', reason: this.#excess })
          if (this.interrupt === 'wanted')
            context.messages.note(`${this.#excess}: the session is interrupted`)
          this.interrupt = 'posting'
        },
      })
      if (is === 'refused') throw failure
      // If the interrupt may have arrived, it is not posted again. The next idle event shows whether it
      // arrived.
      this.#isInDoubt = is === 'unknown'
      if (this.#isInDoubt) return
      this.#follower.addAccepted(interrupt)
      this.#follower.wake()
    })
  }

  #findStop(error: unknown): unknown {
    if (this.#failure) return this.#failure
    const { interrupt } = this
    if (interrupt === 'unwanted') return error
    if (error === undefined) {
      if (interrupt !== 'sent') return undefined
      const isShown = this.#follower.task.isInterrupted
      return this.#createStoppedError(
        this.#isInDoubt && !isShown
          ? '; an interrupt was sent, but it is not known whether it arrived; it may stop the next turn'
          : '',
      )
    }
    if (!(error instanceof CliError)) return error
    const { pending, problems, deadline } = error.details
    if (error.kind === 'waiting') return this.#createStoppedError(`; ${error.message}`, { pending, problems })
    const isLate = this.#run.parts.deadline.hasPassed || (error.kind === 'stopped' && deadline)
    if (!isLate) return error
    if (interrupt !== 'sent') return this.#createRefusedInterruptError()
    return this.#createStoppedError(
      '; an interrupt was sent, but the session is not idle yet and may continue',
    )
  }

  #createRefusedInterruptError(refusal?: CliError): CliError {
    // A passed deadline is not the service's reason, so it is not printed.
    const because = refusal && !refusal.details.deadline ? `: ${refusal.message}` : ''
    return this.#createStoppedError(
      `; the session continues, because the service did not accept the interrupt${because}`,
    )
  }

  #createStoppedError(more = '', details: CliError['details'] = {}): CliError {
    const { resumption } = this.#run
    // A session that was not interrupted continues without a message.
    const isInterrupted = this.interrupt === 'sent'
    const resume = isInterrupted ? resumption.getCommandWithMessage() : resumption.getCommandWithoutMessage()
    // A program that resumed at once would exceed the limit again, so the failure is not retryable. The usage
    // may have grown since the interrupt, so it is described anew.
    return new CliError('stopped', `${this.#updateExcess()}${more}`, {
      sent: 'yes',
      retry: 'never',
      resume,
      ...details,
    })
  }
}
