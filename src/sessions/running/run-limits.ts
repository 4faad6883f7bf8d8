import type { Deadline } from '../../deadline.ts'
import { CliError } from '../../errors.ts'
import { retry } from '../../http/retry.ts'
import { schedule } from '../../timers.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readSessionUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { describeWorkflowRuns } from '../following/incidents.ts'
import { readSessionResource } from '../read-session.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { describeSessionUsage } from '../usage-text.ts'
import { postEventsOnce } from './posting.ts'
import type { SessionRun } from './session-run.ts'
import { UsageMeter } from './usage-meter.ts'

/**
 * Interval at which a run with a limit queries the session's usage, because some services send no usage
 * events.
 */
const queryIntervalMs = 10_000

/** Interval between lists after the interrupt, because the stream may omit the idle event. */
const interruptPollMs = 1_000

const interruptEvent = { type: 'user.interrupt' }

const statesAfter = { sent: 'unknown', accepted: 'accepted', unknown: 'unknown', refused: 'wanted' } as const

/** Times for the session to become idle: after a limit is exceeded, and after the interrupt. */
const [graceMs, maxInterruptMs] = [1000, 30_000]

/**
 * Queries the usage of a run for the report, and enforces `--max-total-tokens` and `--max-cost`. If the
 * session still works 1 s after a limit is exceeded, parley interrupts the session once. A session that waits
 * for replies is interrupted too, because a reply of any client would continue its work. The run ends within
 * 30 s of the interrupt.
 */
export class LimitEnforcer {
  readonly #run: SessionRun
  readonly #meter: UsageMeter
  #cancelQuery = () => {}
  #excessText = ''
  /** Passes when the session has ended its work, so that no interrupt is needed. */
  readonly #workEnd: Deadline
  /** Result: the failure if the run could not post its interrupt. */
  #interrupted: Promise<unknown> | undefined

  constructor(run: SessionRun) {
    this.#run = run
    this.#workEnd = run.parts.deadline.narrow(Infinity, 'the session became idle')
    this.#meter = new UsageMeter(run.plan.limits)
  }

  /** Starts to count the usage. Called before the run sends its task or follows the session. */
  async begin(hasTask: boolean): Promise<void> {
    this.#meter.startRun(hasTask)
    if (!this.#needsUsage || !this.#meter.isStartTotalUnknown) return
    this.#meter.addTotal(await this.#queryUsage())
    this.#meter.startRun(false)
  }

  /**
   * Called after the run has sent its task. Before the task, the session may work for another client, whose
   * usage does not count.
   */
  startQueries(): void {
    this.#run.context.reportData.figures.usage = this.#meter
    if (this.#meter.hasLimits) this.#scheduleQuery()
  }

  addEarlier(items: readonly EventItem[]): void {
    for (const { event } of items) this.#meter.add(event)
  }

  add(items: readonly EventItem[]): void {
    this.addEarlier(items)
    this.#interruptAtLimit()
  }

  /**
   * Called when the session is idle, or when following has failed with `error`. Returns the failure of the
   * run: for an exceeded limit, or otherwise `error`.
   */
  async end(error: unknown): Promise<unknown> {
    if (this.#hasEnded || !isWaitingError(error)) this.#workEnd.pass()
    if (this.#isStopped && this.#needsUsage && !this.#meter.hasTotal) await this.#queryAndCheck()
    const failure = await this.#interrupted
    const { limitWarning } = this.#meter
    if (!this.#run.isOverLimit && limitWarning !== undefined) this.#run.context.messages.warn(limitWarning)
    if (this.#run.isOverLimit || this.#run.follower.state.isHalted) this.#warnOfOpenRuns()
    return failure ?? this.#findFailure(error)
  }

  /** An interrupt does not end workflow runs, so they may continue to spend. */
  #warnOfOpenRuns(): void {
    const runs = this.#run.follower.state.openRuns
    if (runs.length === 0) return
    this.#run.context.messages.warn(
      `these workflow runs are open and may continue to spend: ${describeWorkflowRuns(runs)}; only the session's budget pauses them`,
    )
  }

  warnOfExcess(): void {
    if (this.#run.isOverLimit)
      this.#run.context.messages.warn(`${this.#updateExcess()}; the agent has already finished`)
  }

  describeUsage(): string {
    return describeSessionUsage(this.#meter.runUsage)
  }

  close(): void {
    this.#cancelQuery()
    this.#workEnd.pass()
  }

  get #isStopped(): boolean {
    return this.#run.follower.state.stop !== undefined
  }

  get #hasEnded(): boolean {
    return this.#isStopped && this.#run.follower.state.stop?.kind !== 'waiting'
  }

  get #needsUsage(): boolean {
    const { host, flags } = this.#run.context
    return host.stderr.isTerminal || flags.report !== undefined || this.#meter.hasLimits
  }

  #scheduleQuery(): void {
    this.#cancelQuery = schedule(this.#run.context.host.timers, queryIntervalMs, async () => {
      this.#scheduleQuery()
      if (!this.#isStopped && !this.#run.isOverLimit) await this.#queryAndCheck()
    })
  }

  async #queryAndCheck(): Promise<void> {
    this.#meter.addTotal(await this.#queryUsage())
    this.#interruptAtLimit()
  }

  async #queryUsage(): Promise<SessionUsage | undefined> {
    const session = await readSessionResource(this.#run)
    return session && readSessionUsage(session.usage)
  }

  #updateExcess(): string {
    this.#excessText = this.#meter.describeExceededLimit() ?? this.#excessText
    return this.#excessText
  }

  #interruptAtLimit(): void {
    if (this.#run.isOverLimit || this.#updateExcess() === '') return
    this.#run.interrupt = 'wanted'
    this.#interrupted = this.#interrupt()
  }

  /**
   * Interrupts the session once it has worked for 1 s after the limit. If the work ends first, continues to
   * wait, because the session may work again. After the interrupt, reads lists until the session is idle.
   */
  async #interrupt(): Promise<unknown> {
    const { follower, parts } = this.#run
    while (this.#run.interrupt === 'wanted') {
      await this.#workEnd.wait(graceMs)
      if (this.#workEnd.hasPassed) return undefined
      if (this.#hasEnded) continue
      try {
        await this.#post()
      } catch (error) {
        const refusal = error instanceof CliError && error.kind !== 'file' ? error : undefined
        // The work ended during the attempt, so the refusal does not matter.
        if (refusal && (this.#hasEnded || this.#workEnd.passed === this.#workEnd)) continue
        parts.deadline.pass()
        follower.close()
        return refusal ? this.#createRefusedInterruptError(refusal) : error
      }
    }
    while (!this.#hasEnded && !this.#run.hasStoppedFollowing) {
      await this.#workEnd.wait(interruptPollMs)
      if (this.#workEnd.hasPassed) break
      await follower.refresh().catch(ignoreCliError)
      follower.wake()
    }
    return undefined
  }

  /**
   * Posts the interrupt again and again until the service may have accepted it, or until the session has ended
   * its work. Throws a `CliError` if the service refuses the interrupt, or after 30 s.
   */
  async #post(): Promise<void> {
    const { audit, context, follower, parts } = this.#run
    const endsAtMs = context.host.timers.now() + maxInterruptMs
    const deadline = this.#workEnd.narrow(maxInterruptMs, 'the service did not accept the interrupt in 30 s')
    const access = { ...this.#run, parts: { ...parts, deadline } }
    const body = Buffer.from(JSON.stringify({ events: [interruptEvent] }))
    const reconnects = new ReconnectPolicy(access, follower.outageNotes)
    context.messages.note('the run has reached its limit: parley interrupts the session')
    const attempt = async () => {
      if (this.#hasEnded) return
      const { is, failure } = await postEventsOnce(access, body, {
        record: (event, reason) => {
          if (event === 'sent') audit.add({ toolUse: null, event: 'interrupt', reason: this.#excessText })
          this.#run.interrupt = statesAfter[event]
          if (event === 'refused') audit.add({ toolUse: null, event, reason })
        },
      })
      if (is === 'refused') throw failure
      parts.deadline.moveTo(endsAtMs)
      // An interrupt that may have arrived is not repeated. The next idle event shows whether it arrived.
      if (is === 'accepted') follower.seen.log.addAccepted(interruptEvent)
      follower.wake()
    }
    await retry(deadline, reconnects, attempt).finally(() => reconnects.recordResponse())
  }

  #findFailure(error: unknown): unknown {
    const { follower, hasSentInterrupt, interrupt, isOverLimit } = this.#run
    if (!isOverLimit || (error === undefined && !hasSentInterrupt)) return error
    if (hasSentInterrupt && (error === undefined || isWaitingError(error)))
      return this.#createStoppedError(
        interrupt === 'unknown' && !follower.task.isInterrupted
          ? '; an interrupt was sent, but it is not known whether it arrived; it may stop the next task'
          : '',
      )
    if (!(error instanceof CliError) || !this.#run.parts.deadline.hasPassed) return error
    if (!hasSentInterrupt) return this.#createRefusedInterruptError()
    return this.#createStoppedError(
      '; an interrupt was sent, but the session is not idle yet and may continue',
    )
  }

  #createRefusedInterruptError(refusal?: CliError): CliError {
    // A failure because of a passed deadline is not an answer of the service, so it is not printed.
    const because = refusal && !refusal.details.deadline ? `: ${refusal.message}` : ''
    const { stop } = this.#run.follower.state
    const pending = stop?.kind === 'waiting' ? stop.ids : undefined
    const what = pending ? `still waits for an answer to ${pending.join(', ')}` : 'continues'
    return this.#createStoppedError(
      `; the session ${what}, because the service did not accept the interrupt${because}`,
      { pendingToolUseIds: pending },
    )
  }

  #createStoppedError(more = '', details: CliError['details'] = {}): CliError {
    // If a script resumed at once, the run would exceed the limit again, so `retry` is `never`.
    return new CliError('stopped', `${this.#updateExcess()}${more}`, { retry: 'never', ...details })
  }
}

function ignoreCliError(error: unknown): void {
  if (!(error instanceof CliError)) throw error
}

const isWaitingError = (error: unknown): boolean => error instanceof CliError && error.kind === 'waiting'
