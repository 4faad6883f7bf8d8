import { CliError } from '../../errors.ts'
import { retry } from '../../http/retry.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { parseTimestamp } from '../../wire/timestamp.ts'
import type { ConfirmationPrompt } from '../confirming/confirmation-prompt.ts'
import type { Follower } from '../following/follower.ts'
import { laggingListWaitsMs } from '../listing/event-list.ts'
import type { Decision } from '../policy/policy.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import type { ToolResult } from '../reply-events.ts'
import { SessionState } from '../session-state.ts'
import type { AuditEntry } from './audit.ts'
import type { Denials } from './denials.ts'
import { type Judgement, type KnownToolUse, readToolUse, toAuditFields } from './judgement.ts'
import { postOnce, resolveDoubt } from './posting.ts'
import {
  getNextStep,
  maxDeliveryMs,
  minPollMs,
  type ReplyLine,
  type ReplyState,
  resumeReply,
  settleByList,
  stepReply,
} from './replying.ts'
import type { SessionRun } from './resumption.ts'

/** A tool use and the event that replies to it. */
export interface GivenReply {
  use: KnownToolUse
  event: SessionEvent
}

/**
 * Decides, posts and settles the replies of a run, as far as their states allow. Each step is in the audit
 * file before it is taken.
 */
export class Replies {
  readonly #run: SessionRun
  readonly #follower: Follower
  readonly #denials: Denials
  readonly #prompt: ConfirmationPrompt
  /**
   * Decisions of this run, by tool use id. If the session waits for a tool use again, the run decides again.
   */
  readonly judgements = new Map<string, Judgement>()
  /** States of the replies, by tool use id. */
  readonly #replies: Map<string, ReplyState>
  /** Tool uses whose reply has or had an unknown delivery, and the reason, by id. */
  readonly #doubts = new Map<string, { use: KnownToolUse; reason: string }>()
  /** The run no longer follows the session. */
  isDismissed = false

  constructor(run: SessionRun, follower: Follower, denials: Denials, prompt: ConfirmationPrompt) {
    this.#run = run
    this.#follower = follower
    this.#denials = denials
    this.#prompt = prompt
    const idleEvents = new Set(follower.state.stops)
    this.#replies = new Map([...run.audit.earlier].map(([id, reply]) => [id, resumeReply(reply, idleEvents)]))
  }

  /** No new step may start. Pending tool uses stay open. */
  get isStopped(): boolean {
    return this.isDismissed || this.#run.resumption.isBounded
  }

  #getReply(id: string): ReplyState {
    return this.#replies.get(id) ?? { is: 'deciding' }
  }

  /** Returns the next step of the reply while the session waits for the reply. */
  findNextStep(id: string): ReturnType<typeof getNextStep> {
    const reply = this.#getReply(id)
    // The session accepted the allow and now waits for the result.
    const isNew = this.#follower.state.getToolUse(id)?.wantsResult && !('result' in reply && reply.result)
    return isNew && (reply.is === 'settled' || reply.is === 'in-doubt') ? 'decide' : getNextStep(reply)
  }

  /** Returns the result of a command that is ready to be posted. */
  getReadyResult(id: string): ToolResult | undefined {
    const reply = this.#getReply(id)
    return reply.is === 'ready' ? reply.result : undefined
  }

  /**
   * Returns a tool use if its whole event is known. If earlier runs decided about a different tool use with
   * this id, the tool use counts as contradicted. The reply of those runs then does not apply.
   */
  read(id: string): KnownToolUse | undefined {
    const toolUse = this.#follower.state.getToolUse(id)
    const use = readToolUse(toolUse)
    if (!toolUse || !use || use.isContradicted || !this.#run.audit.isDifferentToolUse(use)) return use
    toolUse.isContradicted = true
    return readToolUse(toolUse)
  }

  /**
   * Returns whether the reply counts as in doubt only because an earlier run found it answered elsewhere, and
   * no run began to post it.
   */
  wasLeftToOthers(id: string): boolean {
    const reply = this.#getReply(id)
    return reply.is === 'in-doubt' && Number.isNaN(reply.sent.at) && reply.sent.idleEvents.size === 0
  }

  /** Leaves a tool use open without a line in the audit, so the next run examines it again. */
  leaveOpen(id: string): void {
    this.#replies.set(id, { is: 'left' })
  }

  /** Writes a line to the audit and applies it to the reply's state. Throws a `CliError` of kind `file`. */
  record({ id, type, server, name }: KnownToolUse, line: ReplyLine, more: Partial<AuditEntry> = {}): void {
    this.#run.audit.add({ toolUse: id, type, server, name, event: line.event, ...more })
    this.#replies.set(id, stepReply(this.#getReply(id), line))
  }

  /** Writes a decision to the audit. `isLeft`: nobody here decided, or can execute the tool use. */
  decide(judgement: Judgement, isLeft: boolean): void {
    this.record(judgement.use, { event: 'decision', isLeft }, toAuditFields(judgement))
    this.judgements.set(judgement.use.id, judgement)
    if (judgement.decision === 'deny') this.#denials.addDenied(judgement)
  }

  /** Returns why the session no longer waits for a tool use, as far as known. */
  findClosedReason({ id, isContradicted }: KnownToolUse): string | undefined {
    const { state } = this.#follower
    // A command runs only while a tool use has one input. If its result is ready, that input was the only
    // one.
    const hadSingleInput = !isContradicted || this.#getReply(id).is === 'ready'
    const isChanged = hadSingleInput && state.getToolUse(id)?.isContradicted
    return (
      state.findClosedReason(id) ?? (isChanged ? 'the service sent it with two different inputs' : undefined)
    )
  }

  /**
   * Reads the newest state and returns the tool uses for which the session still waits. Throws a `CliError`
   * if the session cannot be read: then no step may be taken.
   */
  async filterOpen<T extends { use: KnownToolUse }>(items: readonly T[], isForced = false): Promise<T[]> {
    if (items.length > 0) await this.refresh(isForced)
    return this.settleClosed(items)
  }

  /** Settles the tool uses for which the session no longer waits, and returns the others. */
  settleClosed<T extends { use: KnownToolUse }>(items: readonly T[]): T[] {
    return items.filter(({ use }) => {
      const why = this.findClosedReason(use)
      if (why !== undefined) this.#settleUnsent(use, why)
      return why === undefined
    })
  }

  /** Settles unsent decisions that are no longer needed. Warns about replies with unknown delivery. */
  end(): void {
    const judgements = [...this.judgements.values()]
    this.settleClosed(judgements.filter(({ use }) => /decide|post/.test(this.findNextStep(use.id) ?? '')))
    for (const { use } of judgements)
      if (this.#getReply(use.id).is === 'in-doubt')
        this.#run.context.messages.warn(
          `the answer to ${use.id} was sent, but it is not known whether it arrived`,
        )
  }

  /**
   * Settles a reply that this run does not send. Prints the reason, unless it was printed when a question was
   * withdrawn.
   */
  #settleUnsent(use: KnownToolUse, reason: string): void {
    const { messages } = this.#run.context
    const { id } = use
    const hasRun = this.#getReply(id).is === 'ready'
    this.record(use, { event: 'answered-elsewhere' }, { reason })
    this.judgements.delete(id)
    this.#denials.remove(id)
    if (hasRun) messages.warn(`${id} is not answered here: ${reason}; its command has run`)
    else if (!this.#prompt.hasPrintedWithdrawal(id)) messages.note(`${id} is not answered here: ${reason}`)
  }

  /** Reads the newest state. Retries while the service is unreachable. */
  async refresh(isForced = false): Promise<void> {
    const { deadline } = this.#run.parts
    return retry(deadline, new ReconnectPolicy(this.#run), () => this.#follower.refresh(isForced))
  }

  /**
   * Posts replies: confirmations in one request, and each result in its own request, because a service
   * refuses a whole request if it refuses one event of it. Throws a `CliError` like `#postTogether`.
   */
  async post(replies: readonly GivenReply[]): Promise<void> {
    const isConfirmation = ({ event }: GivenReply) => event.type === 'user.tool_confirmation'
    await this.#postTogether(replies.filter(isConfirmation))
    for (const reply of replies) if (!isConfirmation(reply)) await this.#postTogether([reply])
  }

  /**
   * Posts, in one request, the replies that the session still waits for. Until the run stops, repeats the
   * request after a transient failure if the service certainly did not accept it. Throws the last failure.
   */
  async #postTogether(replies: readonly GivenReply[]): Promise<void> {
    if (replies.length === 0 || this.isStopped) return
    let open = [...replies]
    try {
      await retry(this.#run.parts.deadline, new ReconnectPolicy(this.#run), async () => {
        await this.#follower.refresh()
        open = this.settleClosed(open)
        if (open.length > 0 && !this.isStopped) await this.#postOnce(open)
      })
    } catch (error) {
      if (!(error instanceof CliError) || error.kind !== 'refused' || !error.details.pending) throw error
      const left = await this.#filterOpenAfterRefusal(open)
      if (left.length === open.length && !this.isStopped) throw error
      await this.#postTogether(left)
    }
  }

  /** Throws a `CliError` if the service certainly did not accept the replies. */
  async #postOnce(replies: readonly GivenReply[]): Promise<void> {
    const idleEvents = new Set(this.#follower.state.stops)
    const sent = { at: this.#run.context.host.timers.wallTime(), idleEvents }
    const rest = [...idleEvents].at(-1)
    const body = Buffer.from(JSON.stringify({ events: replies.map(({ event }) => event) }))
    const { is, failure } = await postOnce(this.#run, body, {
      count: replies.length,
      record: (event, reason) => {
        for (const { use } of replies)
          if (event === 'sent') this.record(use, { event, sent }, { rest })
          else this.record(use, { event }, { reason })
      },
    })
    if (is === 'accepted') for (const { event } of replies) this.#follower.addAccepted(event)
    else if (is === 'unknown') this.#addDoubts(replies, failure?.message ?? '')
    else if (failure)
      throw failure.details.status === undefined ? failure : createRefusedError(failure, replies)
  }

  /**
   * Returns the replies for which the session still waits after a refusal. Another client may have answered
   * first, and the list may lag, so the list is read several times if necessary.
   */
  async #filterOpenAfterRefusal(replies: readonly GivenReply[]): Promise<GivenReply[]> {
    let open = [...replies]
    for (const wait of laggingListWaitsMs) {
      await this.#run.parts.deadline.wait(wait)
      open = await this.filterOpen(replies, true)
      if (open.length < replies.length || this.isStopped) break
    }
    return open
  }

  #addDoubts(replies: readonly { use: KnownToolUse }[], reason: string): void {
    for (const { use } of replies) this.#doubts.set(use.id, { use, reason })
  }

  /**
   * Reads the list until each reply in doubt is settled. Ends early if another tool use has a next step,
   * because the idle event after that reply may settle the doubt. `resumed` are tool uses to which an earlier
   * run began to reply. Throws a `CliError` of kind `unknown` if the session still waits for one of them
   * after 30 s.
   */
  async settle(resumed: readonly KnownToolUse[]): Promise<void> {
    for (const use of resumed)
      if (!this.#doubts.has(use.id))
        this.#doubts.set(use.id, { use, reason: 'an earlier run began to answer' })
    const left = () =>
      [...this.#doubts.values()].filter((doubt) => this.#getReply(doubt.use.id).is === 'in-doubt')
    if (left().length === 0) return
    let seen: SessionState | undefined
    const isOver = await resolveDoubt(this.#run, {
      maxMs: this.#getMaxPollMs(left().map(({ use }) => use)),
      read: async (list) => {
        const state = new SessionState()
        const items: EventItem[] = []
        for await (const page of list)
          for (const item of page) {
            items.push(item)
            state.add(item.event, item.text)
          }
        seen = state
        for (const { use } of left()) this.#settleFromList(use, state)
        this.#follower.addList(items)
        return left().length === 0 || this.#hasNextStep || undefined
      },
    })
    // A session that works again does not wait for the reply. If the session waits for the reply later, the
    // list is read again.
    const isAsked = ({ use: { id } }: { use: KnownToolUse }) =>
      !seen || seen.unlisted.length > 0 || seen.answerable.includes(id)
    const unknown = left().filter(isAsked)
    if (isOver || unknown.length === 0) return
    const pending = unknown.map(({ use }) => use.id)
    const message = `it is not known whether the answer to ${pending.join(', ')} arrived: ${unknown[0]?.reason}`
    throw new CliError('unknown', message, {
      sent: 'unknown',
      retry: 'look-first',
      pending,
      consequence: `look with '${this.#run.parts.inspectCommand}' before answering again`,
      resume: this.#run.resumption.getCommand(),
    })
  }

  /** Returns whether the run can now decide about a waiting tool use or post its reply. */
  get #hasNextStep(): boolean {
    const isDue = (id: string) => ['decide', 'post'].includes(this.findNextStep(id) ?? '')
    return !this.isStopped && this.#follower.state.answerable.some(isDue)
  }

  /**
   * Returns the time to read lists, in milliseconds: until the requests have certainly ended, and at least as
   * long as a list may lag.
   */
  #getMaxPollMs(uses: readonly KnownToolUse[]): number {
    const now = this.#run.context.host.timers.wallTime()
    const ends = uses.map(({ id }) => {
      const reply = this.#getReply(id)
      const end = reply.is === 'in-doubt' ? reply.sent.at + maxDeliveryMs - now : Number.NaN
      return Number.isNaN(end) ? maxDeliveryMs : end
    })
    return Math.min(Math.max(minPollMs, ...ends), maxDeliveryMs)
  }

  /** Ends the doubt about a reply if the event list proves whether the service accepted the reply. */
  #settleFromList(use: KnownToolUse, seen: SessionState): void {
    const { context } = this.#run
    const reply = this.#getReply(use.id)
    if (reply.is !== 'in-doubt') return
    const answer = seen.getAnswer(use.id)
    if (answer) {
      const result = answer.decision
      const isOther = result !== undefined && result !== this.#findDecision(use.id)
      if (isOther) this.#settleUnsent(use, `it is answered: ${result}`)
      else this.record(use, { event: 'accepted' })
      return
    }
    // If only a child thread lists a tool use, an idle event of the session proves nothing about that tool
    // use.
    const isUnknown = seen.unlisted.length > 0 || !seen.isIdle || seen.pendingInThreads.includes(use.id)
    const shown = {
      isAnswered: false,
      isListed: isUnknown ? undefined : seen.answerable.includes(use.id),
      showsClients: this.#follower.task.showsClientEvents,
      idleEvents: seen.stops,
      idleAt: parseTimestamp(seen.stoppedAt),
    }
    this.#replies.set(use.id, settleByList(reply, shown, context.host.timers.wallTime()))
  }

  /** Returns the decision of this run or, without one, of an earlier run. */
  #findDecision(id: string): Decision {
    return this.judgements.get(id)?.decision ?? (this.#run.audit.denied.has(id) ? 'deny' : 'allow')
  }
}

function createRefusedError(failure: CliError, replies: readonly GivenReply[]): CliError {
  const pending = replies.map(({ use }) => use.id)
  const message = `the reply to ${pending.join(', ')} was refused: ${failure.message}`
  return new CliError(failure.kind, message, { ...failure.details, pending })
}
