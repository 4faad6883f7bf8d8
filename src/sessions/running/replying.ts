import type { ToolResult } from '../reply-events.ts'

/**
 * The state of the reply to a tool use. The state decides whether the reply may be sent, and whether it may be
 * sent again.
 *
 * A reply can have dangerous effects, so it is sent once. Each arrow is a line of the audit file, which is on
 * the disk before the next action:
 *
 *     deciding          -- decision ---------> deciding   a decision exists
 *     deciding          -- decision ---------> left       nobody here decides, or can execute the tool use
 *     deciding          -- start ------------> working    its command runs
 *     working           -- end --------------> ready      it has a result; the command never runs again
 *     deciding, ready   -- sent -------------> posting    the request may have left
 *     posting           -- accepted ---------> settled
 *     posting           -- refused ----------> deciding, or ready with a result; certainly not accepted
 *     any               -- answered-elsewhere -> settled  the session no longer waits for this reply
 *     posting           -- unknown ----------> in-doubt
 *
 * Only the service's list settles a doubt (`settleByList`). Of these steps, only an
 * answer in the list adds a line to the audit file, `accepted`:
 *
 *     in-doubt          -- the list has an answer ---------> settled
 *     in-doubt          -- a newer idle event lists it ----> deciding, or ready with a result
 *     in-doubt          -- a newer idle event omits it ----> settled: the session does not wait for it
 *     in-doubt          -- anything else ------------------> in-doubt
 *
 * After a kill, the next run applies `stepReply` to the lines of the audit file and then `resumeReply`, because
 * no process works on the reply any more. The lines may come from several runs, and lists add no lines, so each
 * line is valid in each state: a `decision` or `sent` after a doubt means that a run found the tool use waiting
 * anew. `resumeReply` turns `working` into `ready` with the result "effect unknown", `posting` and `settled` into
 * `in-doubt` (the session still waits for the tool use), and `left` into `deciding`.
 *
 * A reply is posted again in two cases only:
 *
 * - The service certainly did not accept its request.
 * - A newer idle event lists the tool use, and for 5 s no list has shown an answer to the tool use. The idle
 *   event is newer than the request if a list first showed the event after the request. If the event was only
 *   unknown when the request was sent, it may be older. Then the request must be over (30 s), and the service
 *   must list the events of clients, because it would then list the reply.
 *
 * The second case is wrong if the service accepts a reply, omits the reply from its list, and lists the tool
 * use again. It is also wrong if a request arrives more than 5 s after its connection broke, while something
 * else makes the session idle anew.
 *
 * These rules hold for one run of a session at a time, which a lock next to the audit file ensures. Without an
 * audit file they hold within one run.
 */
export type ReplyState =
  | { is: 'deciding' }
  | { is: 'left' }
  | { is: 'working' }
  | { is: 'ready'; result: ToolResult }
  | { is: 'posting'; sent: SendContext; result?: ToolResult }
  | Doubt
  | { is: 'settled'; sent: SendContext; result?: ToolResult }

export interface Doubt {
  is: 'in-doubt'
  sent: SendContext
  result?: ToolResult
  /** Ids of idle events that may be older than the reply's arrival. `undefined` before the first list. */
  before?: ReadonlySet<string>
  /** Time of the first list that showed that the session waits for the tool use again. */
  askedSince?: number
}

interface SendContext {
  /** Wall-clock time of this machine in milliseconds since the epoch; NaN if unknown. */
  at: number
  /** Ids of the idle events that were known when the reply was sent. */
  idleEvents: ReadonlySet<string>
}

/** A line of the audit file about a reply. */
export type ReplyLine =
  | { event: 'decision'; isLeft?: boolean }
  | { event: 'start' | 'accepted' | 'refused' | 'unknown' | 'answered-elsewhere' }
  | { event: 'end'; result: ToolResult }
  | { event: 'sent'; sent: SendContext }

/** Returns the state of a reply after a line of the audit file. */
export function stepReply(reply: ReplyState, line: ReplyLine): ReplyState {
  switch (line.event) {
    case 'decision':
      return line.isLeft ? { is: 'left' } : allowRepeat(reply)
    case 'start':
      return { is: 'working' }
    case 'end':
      return { is: 'ready', result: line.result }
    case 'sent':
      return { is: 'posting', sent: line.sent, result: getResult(reply) }
    case 'accepted':
    case 'answered-elsewhere':
      return { ...getSendContext(reply), is: 'settled' }
    case 'refused':
      return allowRepeat(reply)
    case 'unknown':
      return { ...getSendContext(reply), is: 'in-doubt' }
  }
}

/**
 * Returns the state of a reply for a new run, if the session waits for the reply. `idleEvents` are the ids of
 * the idle events in the list so far.
 */
export function resumeReply(reply: ReplyState, idleEvents: ReadonlySet<string>): ReplyState {
  if (reply.is === 'left') return { is: 'deciding' }
  if (reply.is === 'working') return { is: 'ready', result: interruptedResult }
  if (reply.is === 'deciding' || reply.is === 'ready') return reply
  return { ...getSendContext(reply), is: 'in-doubt', before: idleEvents }
}

/** Facts in a list about a reply in doubt. */
export interface ListEvidence {
  isAnswered: boolean
  /** The last idle event lists the tool use; `undefined` if the session works, or the event has no list. */
  isListed: boolean | undefined
  /** The service lists events of clients, so it would list the reply. */
  showsClients: boolean
  /** Ids of all idle events, in order. */
  idleEvents: ReadonlySet<string>
  /** Time of the last idle event by the service's clock, in milliseconds since the epoch. */
  idleAt: number
}

/**
 * After this time, a request with unknown delivery has arrived or never will. The clocks of parley and the
 * service differ by less.
 */
export const maxDeliveryMs = 30_000

/**
 * Maximum lag of a list. A reply is sent again only if lists show for this time that the session waits again.
 */
const maxLagMs = 5_000

/** Minimum time to read lists. It is longer than a list may lag. */
export const minPollMs = maxLagMs + 1_000

/** Returns the state of a reply in doubt after another list. */
export function settleByList(doubt: Doubt, shown: ListEvidence, now: number): ReplyState {
  if (shown.isAnswered) return { ...doubt, is: 'settled' }
  // Idle events in the first list may be older than the request's arrival.
  const before = doubt.before ?? new Set([...doubt.sent.idleEvents, ...shown.idleEvents])
  const isLater = isLaterThanKnown(doubt.sent, shown)
  // The session no longer waits for the reply, so it does not matter whether the reply arrived.
  if (isLater && shown.isListed === false) return { ...doubt, is: 'settled' }
  const isNew = isNewer(doubt.sent, before, shown, now)
  if (!(isNew || isLater) || shown.isListed === undefined) return { ...doubt, before, askedSince: undefined }
  if (!shown.isListed) return { ...doubt, is: 'settled' }
  const askedSince = doubt.askedSince ?? now
  // The request has ended, so it either arrived before this list was read or never will.
  const isSure = isNew || (shown.showsClients && now >= doubt.sent.at + maxDeliveryMs)
  return isSure && now - askedSince >= maxLagMs ? allowRepeat(doubt) : { ...doubt, before, askedSince }
}

/**
 * Returns whether the list contains all idle events that were known when the reply was sent, and a later one.
 */
function isLaterThanKnown(sent: SendContext, { idleEvents }: ListEvidence): boolean {
  const last = [...idleEvents].at(-1)
  if (last === undefined || sent.idleEvents.size === 0 || sent.idleEvents.has(last)) return false
  return [...sent.idleEvents].every((rest) => idleEvents.has(rest))
}

/**
 * Returns whether the last idle event is newer than the reply. One proof is that the event first appeared
 * after the first list. For a reply of an earlier run, the other proof is the event's time: it must be later
 * by more than clocks may differ, and the request must have certainly ended.
 */
function isNewer(
  sent: SendContext,
  before: ReadonlySet<string>,
  { idleEvents, idleAt }: ListEvidence,
  now: number,
): boolean {
  const last = [...idleEvents].at(-1)
  if (last === undefined || sent.idleEvents.has(last)) return false
  const over = sent.at + maxDeliveryMs
  return !before.has(last) || (idleAt > over && now > over)
}

/** Returns the next step of a reply for which the session waits. */
export function getNextStep({ is }: ReplyState): 'decide' | 'post' | 'poll' | undefined {
  if (is === 'deciding') return 'decide'
  if (is === 'ready') return 'post'
  return is === 'in-doubt' ? 'poll' : undefined
}

/** Result of a command that was killed with its run. */
export const interruptedResult: ToolResult = { text: 'interrupted, effect unknown', isError: true }

/**
 * Returns the state of a reply that may be sent again. A new decision is needed, but a command does not run
 * again.
 */
function allowRepeat(reply: ReplyState): ReplyState {
  const result = getResult(reply)
  return result ? { is: 'ready', result } : { is: 'deciding' }
}

function getResult(reply: ReplyState): ToolResult | undefined {
  if (reply.is === 'working') return interruptedResult
  return 'result' in reply ? reply.result : undefined
}

function getSendContext(reply: ReplyState): { sent: SendContext; result?: ToolResult } {
  const sent = 'sent' in reply ? reply.sent : { at: Number.NaN, idleEvents: new Set<string>() }
  return { sent, result: getResult(reply) }
}
