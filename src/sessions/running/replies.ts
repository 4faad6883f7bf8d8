import { CliError } from '../../errors.ts'
import { retry } from '../../http/retry.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { parseTimestamp } from '../../wire/timestamp.ts'
import { describeWaitingToolUses } from '../following/stop-text.ts'
import { collectEvents, laggingListDelaysMs } from '../listing/event-list.ts'
import { type ParsedToolUse, parseToolUse } from '../policy/tool-use.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import type { ToolResult } from '../reply-events.ts'
import { pollEventList, postEventsOnce } from './posting.ts'
import {
  getNextReplyStep,
  maxDeliveryMs,
  minReplyPollMs,
  type ReplyState,
  resumeReplyState,
  updateUnconfirmedReply,
} from './reply-state.ts'
import type { SessionRun } from './session-run.ts'

interface Reply {
  use: ParsedToolUse
  event: SessionEvent
}

/**
 * Stores the states of a run's replies, posts the replies, and finds out whether replies of unknown delivery
 * arrived. Writes each step to the audit file before it takes the step.
 */
export class ReplySender {
  readonly #run: SessionRun
  readonly #unconfirmed = new Map<string, { use: ParsedToolUse; reason: string }>()

  constructor(run: SessionRun) {
    this.#run = run
    const { replies } = run.audit
    const idleEvents = new Set(run.follower.state.stopIds)
    for (const [id, reply] of replies) replies.set(id, resumeReplyState(reply, idleEvents))
  }

  #getReply(id: string): ReplyState {
    return this.#run.audit.replies.get(id) ?? { is: 'deciding' }
  }

  findNextStep(id: string): ReturnType<typeof getNextReplyStep> {
    const reply = this.#getReply(id)
    // After an allow, the session may wait for the result of the same tool use, so the run has to reply
    // once more.
    const isNew = this.#run.follower.state.getToolUse(id)?.wantsResult && !('result' in reply && reply.result)
    return isNew && (reply.is === 'closed' || reply.is === 'unconfirmed') ? 'decide' : getNextReplyStep(reply)
  }

  getUnpostedResult(id: string): ToolResult | undefined {
    const reply = this.#getReply(id)
    return reply.is === 'has-result' ? reply.result : undefined
  }

  /**
   * Finds a tool use by its id. If earlier runs decided about a different tool use with this id, sets
   * `isContradicted`, because the earlier reply is not for this tool use.
   */
  findToolUse(id: string): ParsedToolUse | undefined {
    const toolUse = this.#run.follower.state.getToolUse(id)
    if (toolUse?.text === undefined) return undefined
    const use = parseToolUse(toolUse.text, toolUse)
    if (use.isContradicted || !this.#run.audit.differsFromDecidedToolUse(use)) return use
    toolUse.isContradicted = true
    return parseToolUse(toolUse.text, toolUse)
  }

  /** Returns whether an earlier run recorded another client's answer, and no run began to post a reply. */
  wasAnsweredElsewhere(id: string): boolean {
    const reply = this.#getReply(id)
    return reply.is === 'unconfirmed' && Number.isNaN(reply.sent.sentAtMs) && reply.sent.idleEvents.size === 0
  }

  #findClosedReason({ id, isContradicted }: ParsedToolUse): string | undefined {
    const { state } = this.#run.follower
    // A command starts only for a tool use that the service sent with a single input. So a reply with a
    // result had a single input when its command started, even if `isContradicted` is true now.
    const hadSingleInput = !isContradicted || this.#getReply(id).is === 'has-result'
    const isChanged = hadSingleInput && state.getToolUse(id)?.isContradicted
    return (
      state.findClosedReason(id) ?? (isChanged ? 'the service sent it with two different inputs' : undefined)
    )
  }

  /**
   * Reads the newest events and returns the tool uses for which the session still waits. Throws a `CliError`
   * if the session cannot be read, so that the caller runs no command and posts no reply.
   */
  async filterWaiting<T extends { use: ParsedToolUse }>(items: readonly T[]): Promise<T[]> {
    if (items.length > 0) await this.refresh()
    return this.closeAnswered(items)
  }

  closeAnswered<T extends { use: ParsedToolUse }>(items: readonly T[]): T[] {
    return items.filter(({ use }) => {
      const why = this.#findClosedReason(use)
      if (why !== undefined) this.#closeUnsent(use, why)
      return why === undefined
    })
  }

  closeRemaining(): void {
    const { audit, context, parts } = this.#run
    const judgements = [...audit.judgements.values()]
    this.closeAnswered(judgements.filter(({ use }) => /decide|post/.test(this.findNextStep(use.id) ?? '')))
    for (const { use } of judgements)
      if (this.#getReply(use.id).is === 'unconfirmed')
        context.messages.warn(
          `the answer to ${use.id} was sent, but it is not known whether it arrived: check with '${parts.inspectCommand}'`,
        )
  }

  #closeUnsent(use: ParsedToolUse, reason: string): void {
    const { audit, context } = this.#run
    const { messages } = context
    const { id } = use
    const hasRun = this.#getReply(id).is === 'has-result'
    audit.addReply(use, { event: 'answered-elsewhere' }, { reason })
    if (hasRun) messages.warn(`${id} is not answered by this run: ${reason}; its --tool command has run`)
    else messages.note(`${id} is not answered by this run: ${reason}`)
  }

  async refresh(isForced = false): Promise<void> {
    const { deadline } = this.#run.parts
    return retry(deadline, new ReconnectPolicy(this.#run), () => this.#run.follower.refresh(isForced))
  }

  /**
   * Posts all confirmations in one request. Posts each result separately, because a service refuses a whole
   * request if it refuses one event. Throws a `CliError`.
   */
  async post(replies: readonly Reply[]): Promise<void> {
    const isConfirmation = ({ event }: Reply) => event.type === 'user.tool_confirmation'
    await this.#postTogether(replies.filter(isConfirmation))
    for (const reply of replies) if (!isConfirmation(reply)) await this.#postTogether([reply])
  }

  /**
   * Posts replies in one request. Repeats the request after a transient failure if the service certainly did
   * not accept it. Throws the last failure.
   */
  async #postTogether(replies: readonly Reply[]): Promise<void> {
    if (replies.length === 0 || this.#run.isEnding) return
    let open = [...replies]
    try {
      await retry(this.#run.parts.deadline, new ReconnectPolicy(this.#run), async () => {
        await this.#run.follower.refresh()
        open = this.closeAnswered(open)
        if (open.length > 0 && !this.#run.isEnding) await this.#postOnce(open)
      })
    } catch (error) {
      if (!(error instanceof CliError) || error.kind !== 'refused' || !error.details.pendingToolUseIds)
        throw error
      const left = await this.#filterWaitingAfterRefusal(open)
      if (left.length === open.length && !this.#run.isEnding) throw error
      await this.#postTogether(left)
    }
  }

  async #postOnce(replies: readonly Reply[]): Promise<void> {
    const idleEvents = new Set(this.#run.follower.state.stopIds)
    const sent = { sentAtMs: this.#run.context.host.timers.wallTime(), idleEvents }
    const body = Buffer.from(JSON.stringify({ events: replies.map(({ event }) => event) }))
    const { is, failure } = await postEventsOnce(this.#run, body, {
      count: replies.length,
      record: (event, reason) => {
        const line = event === 'sent' ? { event, sent } : { event }
        for (const { use } of replies) this.#run.audit.addReply(use, line, { reason })
      },
    })
    if (is === 'accepted') for (const { event } of replies) this.#run.follower.addAccepted(event)
    else if (is === 'unknown')
      for (const { use } of replies) this.#unconfirmed.set(use.id, { use, reason: failure?.message ?? '' })
    else if (failure)
      throw failure.details.status === undefined ? failure : createRefusedError(failure, replies)
  }

  /**
   * Returns the refused replies for which the session still waits. Another client may have answered first,
   * and a list may lag. So parley reads several lists before it returns all replies.
   */
  async #filterWaitingAfterRefusal(replies: readonly Reply[]): Promise<Reply[]> {
    let open = [...replies]
    for (const wait of laggingListDelaysMs) {
      await this.#run.parts.deadline.wait(wait)
      await this.refresh(true)
      open = this.closeAnswered(replies)
      if (open.length < replies.length || this.#run.isEnding) break
    }
    return open
  }

  /**
   * Lists events until no reply is unconfirmed. Ends early if the run can reply to another tool use, because
   * the idle event after that reply may also show whether the unconfirmed replies arrived. `uses` are the
   * tool uses with unconfirmed replies, also of earlier runs. Throws a `CliError` of kind `unknown` if the
   * session still waits for one of these replies after 30 s.
   */
  async confirmArrival(uses: readonly ParsedToolUse[]): Promise<void> {
    for (const use of uses)
      if (!this.#unconfirmed.has(use.id))
        this.#unconfirmed.set(use.id, { use, reason: 'an earlier run may have sent the answer' })
    const left = () =>
      [...this.#unconfirmed.values()].filter(({ use }) => this.#getReply(use.id).is === 'unconfirmed')
    if (left().length === 0) return
    let hasList = false
    const isOver = await pollEventList(this.#run, {
      maxMs: this.#getMaxPollMs(left().map(({ use }) => use)),
      read: async (list) => {
        this.#run.follower.addList(await collectEvents(list))
        hasList = true
        for (const { use } of left()) this.#updateUnconfirmed(use)
        const isDue = (id: string) => /decide|post/.test(this.findNextStep(id) ?? '')
        const canReply = !this.#run.isEnding && this.#run.follower.state.answerable.some(isDue)
        return left().length === 0 || canReply || undefined
      },
    })
    // A session that works again does not wait for the reply. If it waits later, the run reads lists again.
    const { state } = this.#run.follower
    const isAsked = ({ use: { id } }: { use: ParsedToolUse }) =>
      !hasList || state.unlisted.length > 0 || state.answerable.includes(id)
    const unknown = left().filter(isAsked)
    if (isOver || unknown.length === 0) return
    const pending = unknown.map(({ use }) => use.id)
    const message = `it is not known whether the answer to ${pending.join(', ')} arrived: ${unknown[0]?.reason}`
    const { context, session, parts } = this.#run
    const waiting = describeWaitingToolUses(context, session, state, pending)
    throw new CliError('unknown', message, {
      sent: 'unknown',
      retry: 'look-first',
      pendingToolUseIds: pending,
      // The resume command never sends this reply again, so it succeeds only after somebody has answered.
      consequence: `check with '${parts.inspectCommand}' before you answer again\n${waiting.consequence}`,
      resumeArguments: this.#run.createResumeCommand(),
    })
  }

  /** Returns the time limit for polling the list. After it, no request can arrive and no list lags. */
  #getMaxPollMs(uses: readonly ParsedToolUse[]): number {
    const now = this.#run.context.host.timers.wallTime()
    const ends = uses.map(({ id }) => {
      const reply = this.#getReply(id)
      const end = reply.is === 'unconfirmed' ? reply.sent.sentAtMs + maxDeliveryMs - now : Number.NaN
      return Number.isNaN(end) ? maxDeliveryMs : end
    })
    return Math.min(Math.max(minReplyPollMs, ...ends), maxDeliveryMs)
  }

  /** Called after each list. */
  #updateUnconfirmed(use: ParsedToolUse): void {
    const { audit, context } = this.#run
    const { state, task } = this.#run.follower
    const reply = this.#getReply(use.id)
    if (reply.is !== 'unconfirmed') return
    const answer = state.getAnswer(use.id)
    if (answer) {
      const result = answer.decision
      const ours = audit.judgements.get(use.id)?.decision ?? (audit.denied.has(use.id) ? 'deny' : 'allow')
      if (result !== undefined && result !== ours)
        this.#closeUnsent(use, `it already has the answer ${result}`)
      else audit.addReply(use, { event: 'accepted' })
      return
    }
    // If only a child thread lists the tool use, an idle event of the session does not show whether the tool
    // use still waits.
    const isUnknown = state.unlisted.length > 0 || !state.isIdle || state.pendingInThreads.includes(use.id)
    const shown = {
      isListed: isUnknown ? undefined : state.answerable.includes(use.id),
      showsClientEvents: task.showsClientEvents,
      idleEvents: state.stopIds,
      idleAt: parseTimestamp(state.lastStop?.processed_at),
    }
    audit.replies.set(use.id, updateUnconfirmedReply(reply, shown, context.host.timers.wallTime()))
  }
}

function createRefusedError(failure: CliError, replies: readonly Reply[]): CliError {
  const pending = replies.map(({ use }) => use.id)
  const message = `the reply to ${pending.join(', ')} was refused: ${failure.message}`
  return new CliError(failure.kind, message, { ...failure.details, pendingToolUseIds: pending })
}
