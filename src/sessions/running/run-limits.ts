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
  #attempt = Promise.resolve()
  #attemptDeadline: Deadline | undefined
  #failure: unknown
  #isUnconfirmed = false

  constructor(run: SessionRun) {
    this.#run = run
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
    if (!isWaitingError(error)) this.#cancelInterrupt()
    if (this.#isStopped && this.#needsUsage && !this.#meter.hasTotal) await this.#queryAndCheck()
    await this.#attempt
    const { limitWarning } = this.#meter
    if (!this.#run.isOverLimit && limitWarning !== undefined) this.#run.context.messages.warn(limitWarning)
    if (this.#run.isOverLimit || this.#run.follower.state.isHalted) this.#warnOfOpenRuns()
    return this.#findFailure(error)
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
    this.#cancelInterrupt()
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
    if (this.#run.interrupt === 'sent') return
    if (this.#updateExcess() === '') return
    if (this.#run.interrupt === 'unwanted') this.#run.interrupt = 'wanted'
    if (this.#hasEnded) this.#cancelInterrupt()
    else if (!this.#attemptDeadline) {
      const deadline = this.#run.parts.deadline.narrow(Infinity, 'the session became idle')
      this.#attemptDeadline = deadline
      this.#attempt = this.#attempt.then(async () => {
        await this.#interrupt(deadline)
        await this.#pollUntil(() => this.#hasEnded || this.#run.hasStoppedFollowing, deadline)
      })
    }
  }

  /** Ends the attempt to interrupt. If the session works again later, another attempt starts. */
  #cancelInterrupt(): void {
    this.#attemptDeadline?.pass()
    this.#attemptDeadline = undefined
  }

  async #interrupt(deadline: Deadline): Promise<void> {
    const { context, parts } = this.#run
    await deadline.wait(graceMs)
    if (deadline.hasPassed || this.#run.interrupt === 'sent') return
    if (this.#hasEnded) return this.#cancelInterrupt()
    parts.deadline.moveTo(context.host.timers.now() + maxInterruptMs)
    try {
      await this.#post(deadline)
      this.#run.interrupt = 'sent'
    } catch (error) {
      const refusal = error instanceof CliError && error.kind !== 'file' ? error : undefined
      this.#run.interrupt = 'wanted'
      // The session became idle during the attempt, so no interrupt is needed.
      if (refusal && this.#attemptDeadline !== deadline) return this.#run.parts.deadline.moveTo(Infinity)
      this.#failure = refusal ? this.#createRefusedInterruptError(refusal) : error
      this.#run.parts.deadline.pass()
      this.#run.follower.close()
    }
  }

  async #pollUntil(isOver: () => boolean, deadline: Deadline): Promise<void> {
    const { follower } = this.#run
    while (!isOver()) {
      await deadline.wait(interruptPollMs)
      if (deadline.hasPassed) return
      await follower.refresh().catch(ignoreCliError)
      follower.wake()
    }
  }

  /**
   * Posts the interrupt again and again until the service may have accepted it. Throws a `CliError` if the
   * service refuses it, or if `deadline` passes first.
   */
  async #post(deadline: Deadline): Promise<void> {
    const { audit, context, follower } = this.#run
    const access = { ...this.#run, parts: { ...this.#run.parts, deadline } }
    const body = Buffer.from(JSON.stringify({ events: [interruptEvent] }))
    const reconnects = new ReconnectPolicy(access, follower.outageNotes)
    const attempt = async () => {
      const { is, failure } = await postEventsOnce(access, body, {
        record: (event, reason) => {
          if (event === 'refused') audit.add({ toolUse: null, event, reason })
          if (event !== 'sent') return
          audit.add({ toolUse: null, event: 'interrupt', reason: this.#excessText })
          if (this.#run.interrupt === 'wanted')
            context.messages.note('the run has reached its limit: parley interrupts the session')
          this.#run.interrupt = 'posting'
        },
      })
      if (is === 'refused') throw failure
      // An interrupt that may have arrived is not repeated. The next idle event shows whether it arrived.
      this.#isUnconfirmed = is === 'unknown'
      if (this.#isUnconfirmed) return
      follower.seen.log.addAccepted(interruptEvent)
      follower.wake()
    }
    await retry(deadline, reconnects, attempt).finally(() => reconnects.recordResponse())
  }

  #findFailure(error: unknown): unknown {
    if (this.#failure) return this.#failure
    const isSent = this.#run.interrupt === 'sent'
    if (this.#run.interrupt === 'unwanted' || (error === undefined && !isSent)) return error
    if (isSent && (error === undefined || isWaitingError(error))) {
      const hasArrived = this.#run.follower.task.isInterrupted
      return this.#createStoppedError(
        this.#isUnconfirmed && !hasArrived
          ? '; an interrupt was sent, but it is not known whether it arrived; it may stop the next task'
          : '',
      )
    }
    if (!(error instanceof CliError) || !this.#run.parts.deadline.hasPassed) return error
    if (!isSent) return this.#createRefusedInterruptError()
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
