import { type Answer, computeDigest } from '../session-state.ts'

/**
 * State of the reply to a tool use. A reply is a confirmation or the result of a `--tool` command. The state
 * decides whether parley may send the reply, and whether parley may send it again.
 *
 * A reply can have dangerous effects, so parley sends it once. Each arrow names the `event` of a line in the
 * audit file. parley writes the line to the disk before its next action.
 *
 *     deciding             -- decision -----------> deciding     a rule or a person has decided
 *     deciding             -- decision -----------> left-open    nobody decided, or no command runs the tool
 *     deciding             -- start --------------> executing    the command of the tool use runs
 *     executing            -- end ----------------> has-result   the command has ended and never runs again
 *     deciding, has-result -- sent ---------------> posting      the request may have left
 *     posting              -- accepted -----------> closed       the service accepted the reply
 *     posting              -- refused ------------> has-result, or deciding if there is no result
 *     posting              -- unknown ------------> unconfirmed  the service may have accepted the reply
 *     unconfirmed          -- answered-elsewhere -> closed       the session no longer waits for this reply
 *     deciding, has-result -- answered-elsewhere -> no change    the same, but the session may wait again
 *
 * For an unconfirmed reply, parley reads the event list again and again, and checks the session's state after
 * each list. If the state has an answer to the tool use, parley adds the line `accepted`, or
 * `answered-elsewhere` if this run sent another answer. Otherwise it adds no line (`updateUnconfirmedReply`):
 *
 *     a newer idle event lists the tool use          -> has-result, or deciding if there is no result
 *     a newer idle event does not list the tool use  -> closed, because the session does not wait for it
 *     anything else                                  -> unconfirmed
 *
 * A new run calls `applyReplyAuditLine` for each line of the audit file. Any line may follow any other,
 * because parley writes no line for most state changes that an event list shows. If the session waits for the
 * tool use, the run then calls `resumeReplyState`:
 *
 *     executing        -> has-result, with the result "interrupted, effect unknown"
 *     posting, closed  -> unconfirmed, because the session waits although a reply was sent
 *     left-open        -> deciding
 *
 * Before its first reply, the new run waits until 6 s after the last line `answered-elsewhere`, because its lists
 * may lag behind the answer that the earlier run has seen.
 *
 * parley posts a reply again in two cases only:
 *
 * 1. The service certainly did not accept the request.
 * 2. A newer idle event lists the tool use, and for 5 s no list has shown an answer to it.
 *
 * In case 2, the idle event is newer if one of these conditions is true:
 *
 * - parley received the idle event only after the first list since the request.
 * - The list contains the last idle event that parley knew when it sent the request, and then this one. The
 *   request may still be on its way, so parley also waits until 30 s after the request. This condition needs a
 *   service that lists client events, because such a list would show the reply, too.
 *
 * So case 2 has two risks. If the service lists the tool use again, but not the accepted reply, parley repeats
 * that reply. If a reply from a broken connection arrives over 5 s after the session became idle, parley
 * repeats that reply, too.
 *
 * A lock allows only one run per session at a time. Without an audit file, a later run cannot apply these
 * rules to the replies of an earlier run.
 */
export type ReplyState =
  | { is: 'deciding' | 'left-open' | 'executing'; sent?: undefined; result?: undefined }
  | { is: 'has-result'; sent?: undefined; result: ToolResult }
  | { is: 'posting' | 'closed'; sent: SendContext; result?: ToolResult }
  | UnconfirmedReply

interface UnconfirmedReply {
  is: 'unconfirmed'
  sent: SendContext
  result?: ToolResult
  /**
   * Ids of idle events that may be older than the arrival of the reply. `undefined` until parley has read the
   * event list once.
   */
  olderIdleEvents?: ReadonlySet<string | undefined>
  /** Wall-clock time of the first event list that showed that the session waits for the tool use again. */
  waitingSince?: number
}

interface ToolResult {
  text: string
  isError: boolean
}

interface SendContext {
  /** Wall-clock time of this machine; NaN if unknown. */
  sentAtMs: number
  /** Id of the last idle event that was known when parley sent the reply. */
  lastIdleEvent: string | undefined
}

export type ReplyAuditLine =
  | { event: 'decision'; staysOpen?: boolean }
  | { event: 'start' | 'accepted' | 'refused' | 'unknown' | 'answered-elsewhere' }
  | { event: 'end'; result: ToolResult }
  | { event: 'sent'; sent: SendContext }

export function applyReplyAuditLine(reply: ReplyState, line: ReplyAuditLine): ReplyState {
  switch (line.event) {
    case 'decision':
      return line.staysOpen ? { is: 'left-open' } : reopenReply(reply)
    case 'start':
      return { is: 'executing' }
    case 'end':
      return { is: 'has-result', result: line.result }
    case 'sent':
      return { is: 'posting', sent: line.sent, result: getResult(reply) }
    case 'accepted':
      return { ...getSendContext(reply), is: 'closed' }
    case 'answered-elsewhere':
      return reply.sent ? { ...getSendContext(reply), is: 'closed' } : reopenReply(reply)
    case 'refused':
      return reopenReply(reply)
    case 'unknown':
      return { ...getSendContext(reply), is: 'unconfirmed' }
  }
}

export function resumeReplyState(reply: ReplyState, idleEvents: ReadonlySet<string>): ReplyState {
  if (!reply.sent) return reopenReply(reply)
  return { ...getSendContext(reply), is: 'unconfirmed', olderIdleEvents: idleEvents }
}

interface ListEvidence {
  isListed: boolean | undefined
  /** True if the service lists the events of clients. Then a reply that is not listed has not arrived. */
  showsClientEvents: boolean
  idleEvents: ReadonlySet<string | undefined>
}

/** Maximum time until a sent request arrives. */
export const maxDeliveryMs = 30_000

/**
 * Maximum time that a list may lag. Before parley sends a reply again, lists must show for this time that the
 * session waits for the tool use.
 */
const maxLagMs = 5_000

export const minPollTimeoutMs = maxLagMs + 1_000

export function updateUnconfirmedReply(
  reply: UnconfirmedReply,
  shown: ListEvidence,
  now: number,
): ReplyState {
  // Idle events in the first list may be older than the arrival of the reply, so they prove nothing.
  const olderIdleEvents = reply.olderIdleEvents ?? new Set(shown.idleEvents)
  const stillUnconfirmed = { ...reply, olderIdleEvents, waitingSince: undefined }
  const last = [...shown.idleEvents].at(-1)
  const { sentAtMs, lastIdleEvent } = reply.sent
  if (last === undefined || last === lastIdleEvent || shown.isListed === undefined) return stillUnconfirmed
  const isNew = !olderIdleEvents.has(last)
  const followsKnownEvent = shown.idleEvents.has(lastIdleEvent)
  if (!(isNew || followsKnownEvent)) return stillUnconfirmed
  // The session no longer waits for the reply, so it does not matter whether the reply arrived.
  if (!shown.isListed) return { ...reply, is: 'closed' }
  const waitingSince = reply.waitingSince ?? now
  // After `maxDeliveryMs`, a request that has not arrived never will.
  const isCertainlyLost = isNew || (shown.showsClientEvents && now >= sentAtMs + maxDeliveryMs)
  return isCertainlyLost && now - waitingSince >= maxLagMs
    ? reopenReply(reply)
    : { ...stillUnconfirmed, waitingSince }
}

/**
 * Returns what the run does next about a tool use for which the session waits. `needsResult`: a client has
 * allowed the tool use, and the session now waits for its result. So the run replies again.
 */
export function getNextReplyStep(
  { is, result }: ReplyState,
  needsResult = false,
): 'decide' | 'post' | 'poll' | undefined {
  const isOtherReply = needsResult && !result && (is === 'closed' || is === 'unconfirmed')
  if (is === 'deciding' || isOtherReply) return 'decide'
  if (is === 'has-result') return 'post'
  return is === 'unconfirmed' ? 'poll' : undefined
}

/**
 * Compares the answer that the session shows with this reply. Returns `ours` for this reply, the reason why
 * this reply is obsolete for another answer, and `undefined` if the session shows no answer.
 */
export function identifyAnswer(
  { result }: ReplyState,
  answer: Readonly<Answer> | undefined,
  ourDecision: 'allow' | 'deny',
): 'ours' | `it already has ${string}` | undefined {
  // A confirmation is not the answer if this run posted a result.
  if (!answer || (result && !answer.isResult)) return undefined
  const { clientResults, decision } = answer
  if (result && clientResults && !clientResults.includes(computeDigest(result.text)))
    return 'it already has another result'
  if (decision !== undefined && decision !== ourDecision) return `it already has the answer ${decision}`
  return 'ours'
}

export const interruptedCommandResult: ToolResult = { text: 'interrupted, effect unknown', isError: true }

function reopenReply(reply: ReplyState): ReplyState {
  const result = getResult(reply)
  return result ? { is: 'has-result', result } : { is: 'deciding' }
}

function getResult(reply: ReplyState): ToolResult | undefined {
  return reply.is === 'executing' ? interruptedCommandResult : reply.result
}

function getSendContext(reply: ReplyState): { sent: SendContext; result?: ToolResult } {
  const unknown = { sentAtMs: Number.NaN, lastIdleEvent: undefined }
  return { sent: reply.sent ?? unknown, result: getResult(reply) }
}
