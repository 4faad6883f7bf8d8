import { CliError } from '../../errors.ts'
import { describeRetry } from '../../http/call.ts'
import { decideRetry, type RetryRules, retry } from '../../http/retry.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { describeWaitingToolUses } from '../following/stop-text.ts'
import { collectEvents, eventListPollDelaysMs } from '../listing/event-list.ts'
import { type ParsedToolUse, parseToolUse } from '../policy/tool-use.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { describeDecider, formatReason } from './judgement.ts'
import { pollEventList, postEventsOnce } from './posting.ts'
import {
  getNextReplyStep,
  identifyAnswer,
  maxDeliveryMs,
  minPollTimeoutMs,
  updateUnconfirmedReply,
} from './reply-state.ts'
import type { SessionRun } from './session-run.ts'

interface Reply {
  use: ParsedToolUse
  event: SessionEvent
}

export function findNextReplyStep(run: SessionRun, id: string): ReturnType<typeof getNextReplyStep> {
  return getNextReplyStep(run.audit.getReply(id), run.follower.state.getToolUse(id)?.needsResult)
}

const canReply = (run: SessionRun, id: string): boolean =>
  /decide|post/.test(findNextReplyStep(run, id) ?? '')

/**
 * Finds a tool use by its id. Marks the tool use as contradicted if an earlier run decided about a different
 * tool use with this id. The recorded reply is only for that other tool use.
 */
export function findToolUse({ audit, follower }: SessionRun, id: string): ParsedToolUse | undefined {
  const toolUse = follower.state.getToolUse(id)
  if (toolUse?.text === undefined) return undefined
  const use = parseToolUse(toolUse.text, toolUse)
  if (use.isContradicted || !audit.differsFromDecidedToolUse(use)) return use
  follower.state.contradictToolUse(id)
  return parseToolUse(toolUse.text, { ...toolUse, isContradicted: true })
}

function findClosedReason({ audit, follower }: SessionRun, use: ParsedToolUse): string | undefined {
  const { id, isContradicted } = use
  const { state } = follower
  // A command starts only for a tool use with a single input. So if the reply has a result, the second input
  // came after the command had started.
  const hadSingleInput = !isContradicted || audit.getReply(id).is === 'has-result'
  const isChanged = hadSingleInput && state.getToolUse(id)?.isContradicted
  return (
    state.findClosedReason(id) ?? (isChanged ? 'the service sent it with two different inputs' : undefined)
  )
}

/**
 * Reads the newest events and returns the tool uses for which the session still waits. Throws a `CliError`
 * if the session cannot be read, so that the caller runs no command and posts no reply.
 */
export async function filterWaitingToolUses<T extends { use: ParsedToolUse }>(
  run: SessionRun,
  items: readonly T[],
): Promise<T[]> {
  if (items.length > 0) await retryReplying(run, () => run.follower.refresh())
  return closeObsoleteReplies(run, items)
}

/** Closes the replies to tool uses for which the session no longer waits. Returns the other items. */
export function closeObsoleteReplies<T extends { use: ParsedToolUse }>(
  run: SessionRun,
  items: readonly T[],
): T[] {
  return items.filter(({ use }) => {
    const why = findClosedReason(run, use)
    if (why !== undefined) closeUnsentReply(run, use, why)
    return why === undefined
  })
}

export function closeRemainingReplies(run: SessionRun): void {
  const { audit, context, parts } = run
  const decided = [...audit.judgements.values()].filter(({ use }) => canReply(run, use.id))
  closeObsoleteReplies(run, decided)
  for (const { use } of listUnconfirmed(run))
    context.messages.warn(
      `the answer to ${use.id} was sent, but it is not known whether it arrived: check with '${parts.inspectCommand}'`,
    )
}

function closeUnsentReply(run: SessionRun, use: ParsedToolUse, reason: string): void {
  const { audit, context, follower } = run
  const { messages } = context
  const { id } = use
  const hasRun = audit.getReply(id).result !== undefined
  audit.addReplyStep(use, { event: 'answered-elsewhere' }, { reason })
  // A contradicted tool use gets no reply later, because a result may belong to the other input.
  if (follower.state.getToolUse(id)?.isContradicted) audit.replies.set(id, { is: 'left-open' })
  if (hasRun) messages.warn(`${id} is not answered by this run: ${reason}; its --tool command has run`)
  else messages.note(`${id} is not answered by this run: ${reason}`)
}

/** Lists the events until `isOver` returns true, for up to 5 s, because a list may lag. */
export async function refreshUntil(run: SessionRun, isOver: () => boolean): Promise<void> {
  for (const wait of eventListPollDelaysMs) {
    if (isOver()) return
    await run.parts.deadline.wait(wait)
    await retryReplying(run, () => run.follower.refresh(true))
  }
}

/**
 * Retries a refused reply `--retries` times, like a refused task, and any other transient failure for 5 minutes.
 */
async function retryReplying(run: SessionRun, attempt: () => Promise<void>): Promise<void> {
  const { caller, context, follower, parts } = run
  const { timers } = context.host
  const reconnects = new ReconnectPolicy(run, follower.outageNotes)
  const policy = { repeat: endpoints.sendEvents.repeat, retries: caller.retries, retryUnknown: false }
  let attempts = 0
  function decideAboutRefusal(failure: CliError): number | CliError {
    reconnects.recordResponse()
    // `deadlineMs` is `Infinity`, because `requireNext` ends the attempts after the deadline.
    const times = { now: timers.now(), random: timers.random(), deadlineMs: Infinity }
    const wait = decideRetry(policy, failure, { attempt: ++attempts, ...times })
    if (typeof wait === 'number') context.messages.note(describeRetry(failure, wait))
    return wait
  }
  const rules: RetryRules = {
    decide: (failure) =>
      failure.details.pendingToolUseIds ? decideAboutRefusal(failure) : reconnects.decide(failure),
    requireNext: (failure) => reconnects.requireNext(failure),
  }
  await retry(parts.deadline, rules, attempt)
  reconnects.recordResponse()
}

/**
 * Posts all confirmations in one request. Posts each result separately, because a service refuses a whole
 * request if it refuses one event.
 */
export async function postReplies(run: SessionRun, replies: readonly Reply[]): Promise<void> {
  const isConfirmation = ({ event }: Reply) => event.type === 'user.tool_confirmation'
  await postTogether(run, replies.filter(isConfirmation))
  for (const reply of replies) if (!isConfirmation(reply)) await postTogether(run, [reply])
}

/**
 * Posts replies in one request. Repeats the request after a transient failure if the service certainly did
 * not accept it. Throws the last failure.
 */
async function postTogether(run: SessionRun, replies: readonly Reply[]): Promise<void> {
  if (replies.length === 0 || run.isEnding) return
  let open = [...replies]
  try {
    await retryReplying(run, async () => {
      await run.follower.refresh()
      open = closeObsoleteReplies(run, open)
      if (open.length > 0 && !run.isEnding) await postOnce(run, open)
    })
  } catch (error) {
    if (!(error instanceof CliError) || error.kind !== 'refused' || !error.details.pendingToolUseIds)
      throw error
    // The service may have refused the replies because another client answered first, so parley lists the
    // events.
    const { length } = open
    const isAnsweredElsewhere = () => {
      open = closeObsoleteReplies(run, open)
      return open.length < length || run.isEnding
    }
    await refreshUntil(run, isAnsweredElsewhere)
    if (!isAnsweredElsewhere()) throw error
    await postTogether(run, open)
  }
}

/**
 * Counts and prints a decision of this run after it took effect: the command has started, or the service has
 * accepted the reply. Omits the input of the tool use, because the transcript has already printed it.
 */
export function applyDecision({ audit, context: { host, messages } }: SessionRun, id: string): void {
  const judgement = audit.judgements.get(id)
  // The decision to run a command was printed when the command started.
  if (!judgement || audit.getReply(id).result) return
  audit.effective.set(id, judgement.decision)
  if (!host.stderr.isTerminal) return
  const { use, decision, by, reason } = judgement
  const tool = quoteAndShortenName(use.name)
  const what =
    decision === 'allow'
      ? `${messages.style.green('✓')} ${tool} allowed`
      : `${messages.style.red('✗')} ${tool} denied${formatReason(reason)}`
  const who = by === 'person' ? '' : messages.style.dim(` (${describeDecider(judgement)})`)
  messages.printLine(messages.wrap(`${what}${who}`))
}

const identifyShownAnswer = ({ audit, follower }: SessionRun, id: string) =>
  identifyAnswer(audit.getReply(id), follower.state.getAnswer(id), audit.denied.has(id) ? 'deny' : 'allow')

async function postOnce(run: SessionRun, replies: readonly Reply[]): Promise<void> {
  // A service may accept replies without a response. The event list then shows that they arrived.
  const deadline = run.parts.deadline.narrow(maxDeliveryMs, 'no response within 30 s')
  const lastIdleEvent = [...run.follower.state.stopIds].at(-1)
  const sent = { sentAtMs: run.context.host.timers.wallTime(), lastIdleEvent }
  const body = Buffer.from(JSON.stringify({ events: replies.map(({ event }) => event) }))
  const access = { ...run, parts: { ...run.parts, deadline } }
  const { is, failure } = await postEventsOnce(access, body, {
    count: replies.length,
    record: (event, reason) => {
      const line = event === 'sent' ? { event, sent } : { event }
      for (const { use } of replies) run.audit.addReplyStep(use, line, { reason })
      if (event === 'accepted') for (const { use } of replies) applyDecision(run, use.id)
    },
  })
  if (is === 'accepted') for (const { event } of replies) run.follower.seen.log.addAccepted(event)
  if (is !== 'refused' || !failure) return
  if (failure.details.status === undefined) throw failure
  const pending = replies.map(({ use }) => use.id)
  const message = `the answer to ${pending.join(', ')} was refused: ${failure.message}`
  throw failure.with({ pendingToolUseIds: pending }, message)
}

/**
 * Lists events until no reply is unconfirmed. Ends early if the run can reply to another tool use. The next
 * idle event may then also show whether the unconfirmed replies arrived. `uses` are the tool uses with
 * unconfirmed replies, also of earlier runs. Throws a `CliError` of kind `unknown` if the session still waits
 * for one of these replies after 30 s.
 */
export async function pollUnconfirmedReplies(run: SessionRun, uses: readonly ParsedToolUse[]): Promise<void> {
  const { audit, follower, parts } = run
  const { state } = follower
  for (const use of uses)
    if (!audit.unconfirmed.has(use.id))
      audit.unconfirmed.set(use.id, { use, reason: 'an earlier run may have sent the answer' })
  for (const each of listUnconfirmed(run))
    if (identifyShownAnswer(run, each.use.id)) updateUnconfirmed(run, each)
  if (listUnconfirmed(run).length === 0) return
  let hasList = false
  const isOver = await pollEventList(run, {
    maxMs: getPollTimeoutMs(run),
    read: async (list) => {
      follower.addList(await collectEvents(list))
      hasList = true
      for (const each of listUnconfirmed(run)) updateUnconfirmed(run, each)
      const hasOther = !run.isEnding && state.answerable.some((id) => canReply(run, id))
      return hasOther || listUnconfirmed(run).length === 0 || undefined
    },
  })
  // If the session works again, it no longer waits for the reply, so it does not matter whether the reply
  // arrived. If the session waits for the reply later, the run reads lists again.
  const unknown = listUnconfirmed(run).filter(
    ({ use: { id } }) => !hasList || state.unlisted.length > 0 || state.answerable.includes(id),
  )
  if (isOver || unknown.length === 0) return
  const pending = unknown.map(({ use }) => use.id)
  const message = `it is not known whether the answer to ${pending.join(', ')} arrived: ${unknown[0]?.reason}`
  const waiting = describeWaitingToolUses(run, state, pending)
  throw new CliError('unknown', message, {
    sent: 'unknown',
    retry: 'look-first',
    deadline: parts.deadline.hasPassed || undefined,
    pendingToolUseIds: pending,
    // The resume command does not send this answer again. If the answer was lost, the command succeeds only
    // after the user or another client has answered the tool use.
    consequence: `check with '${parts.inspectCommand}' before you answer again\n${waiting.consequence}`,
    resumeArguments: run.createResumeCommand(),
  })
}

const listUnconfirmed = ({ audit }: SessionRun) =>
  [...audit.unconfirmed.values()].flatMap((each) => {
    const reply = audit.getReply(each.use.id)
    return reply.is === 'unconfirmed' ? { ...each, reply } : []
  })

/**
 * Returns the polling time after which each sent request has arrived or is lost, and the list is up to date.
 */
function getPollTimeoutMs(run: SessionRun): number {
  const now = run.context.host.timers.wallTime()
  const ends = listUnconfirmed(run).map(({ reply }) => reply.sent.sentAtMs + maxDeliveryMs - now)
  const isUnknown = ends.some(Number.isNaN)
  return isUnknown ? maxDeliveryMs : Math.min(Math.max(minPollTimeoutMs, ...ends), maxDeliveryMs)
}

function updateUnconfirmed(
  run: SessionRun,
  { use, reply }: ReturnType<typeof listUnconfirmed>[number],
): void {
  const { audit, context } = run
  const { state, task } = run.follower
  const answer = identifyShownAnswer(run, use.id)
  if (answer === 'ours') {
    audit.addReplyStep(use, { event: 'accepted' })
    applyDecision(run, use.id)
  } else if (answer !== undefined) closeUnsentReply(run, use, answer)
  else {
    // If only a child thread lists the tool use, the main thread's idle events do not show whether the child
    // thread still waits.
    const isUnknown = state.unlisted.length > 0 || !state.isIdle || state.pendingInThreads.includes(use.id)
    const shown = {
      isListed: isUnknown ? undefined : state.answerable.includes(use.id),
      showsClientEvents: task.showsClientEvents,
      idleEvents: state.stopIds,
    }
    audit.replies.set(use.id, updateUnconfirmedReply(reply, shown, context.host.timers.wallTime()))
  }
}
