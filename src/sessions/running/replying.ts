import type { ToolResult } from '../reply-events.ts'

/**
 * Whether a reply to a tool use may be given, and whether it may be given again.
 *
 * A reply can set off a dangerous thing, so it is given once. The reply to each tool use is in one of these states. Each arrow
 * is a line of the journal (the audit file), which is on the disk before anything else is done:
 *
 *     deciding          -- decision ---------> deciding   it was decided
 *     deciding          -- decision ---------> left       nobody here decides it, or can carry it out
 *     deciding          -- start ------------> working    its command runs
 *     working           -- end --------------> ready      its result is known: the command never runs again
 *     deciding, ready   -- sent -------------> posting    the request may have left
 *     posting           -- accepted ---------> settled
 *     posting           -- refused ----------> deciding, or ready if there is a result: it was certainly not taken
 *     any               -- answered-elsewhere -> settled  nobody waits for this reply any more
 *     posting           -- unknown ----------> in-doubt
 *
 * What is in doubt is settled by the service's own list alone (`look`). Only an answer in that list is a line, `accepted`:
 *
 *     in-doubt          -- it has an answer -------------> settled
 *     in-doubt          -- a newer rest lists it --------> deciding, or ready if there is a result
 *     in-doubt          -- a newer rest leaves it out ---> settled: nobody waits for it, whether it arrived or not
 *     in-doubt          -- anything else ----------------> in-doubt
 *
 * A run that goes on after a kill is the same machine: `step` over the lines of the journal, then `resume`, since nobody is
 * at work on it any more. Lines may be of several runs, and what a run found without a line is not among them. So each line
 * counts in each state: a `decision` or a `sent` after a doubt says that a run had found the tool use to be waiting anew. In the
 * end `working` is `ready` with a result that says that the effect is unknown. `posting` is `in-doubt`, and so is `settled`:
 * that the session still waits for it speaks against it. `left` is `deciding`.
 *
 * So a reply is posted again in two cases only:
 *
 * - The service certainly did not take its request.
 * - A newer idle event lists the tool use, and for 5 s no list has shown an answer to it. The idle event is newer than the
 *   request if it was first listed after the request. It may be older if it was only unknown when the request was sent. Then
 *   the request must be over (30 s), and the service must list the events of clients, as it would list the reply.
 *
 * The second case is wrong if the service takes a reply, leaves it out of its list, and asks again. It is also wrong if a
 * request arrives more than 5 s after its connection broke, while something else makes the session idle anew.
 *
 * That holds for one run of a session at a time, which a lock beside the journal sees to. Without a journal it holds within
 * one run.
 */
export type Reply =
  | { is: 'deciding' }
  | { is: 'left' }
  | { is: 'working' }
  | { is: 'ready'; result: ToolResult }
  | { is: 'posting'; sent: Sending; result?: ToolResult }
  | Doubt
  | { is: 'settled'; sent: Sending; result?: ToolResult }

export interface Doubt {
  is: 'in-doubt'
  sent: Sending
  result?: ToolResult
  /** The rests that say nothing about it; not known before the first list. */
  before?: ReadonlySet<string>
  /** Since when lists show that the session waits for it anew. */
  askedSince?: number
}

interface Sending {
  /** Milliseconds since the epoch, by this machine's clock; NaN if it is not known. */
  at: number
  /** The rests of the session that were known when it was sent. */
  rests: ReadonlySet<string>
}

/** A line of the journal about a reply. */
export type JournalLine =
  | { event: 'decision'; isLeft?: boolean }
  | { event: 'start' | 'accepted' | 'refused' | 'unknown' | 'answered-elsewhere' }
  | { event: 'end'; result: ToolResult }
  | { event: 'sent'; sent: Sending }

/** What a reply becomes by a line of the journal. */
export function step(reply: Reply, line: JournalLine): Reply {
  switch (line.event) {
    case 'decision':
      return line.isLeft ? { is: 'left' } : again(reply)
    case 'start':
      return { is: 'working' }
    case 'end':
      return { is: 'ready', result: line.result }
    case 'sent':
      return { is: 'posting', sent: line.sent, result: resultOf(reply) }
    case 'accepted':
    case 'answered-elsewhere':
      return { ...sendingOf(reply), is: 'settled' }
    case 'refused':
      return again(reply)
    case 'unknown':
      return { ...sendingOf(reply), is: 'in-doubt' }
  }
}

/**
 * What a reply is for a run that begins now and finds the session waiting for it. `rests` are those that the session has
 * shown so far.
 */
export function resume(reply: Reply, rests: ReadonlySet<string>): Reply {
  if (reply.is === 'left') return { is: 'deciding' }
  if (reply.is === 'working') return { is: 'ready', result: interrupted }
  if (reply.is === 'deciding' || reply.is === 'ready') return reply
  return { ...sendingOf(reply), is: 'in-doubt', before: rests }
}

/** What a list says about a reply in doubt. */
export interface Shown {
  isAnswered: boolean
  /** Whether the session idles for it; undefined if the session works, or its idle event has no list of tool uses. */
  isListed: boolean | undefined
  /** The service lists the events of clients, so a missing answer means something. */
  showsClients: boolean
  /** All rests, the last one last. */
  rests: ReadonlySet<string>
  /** When the last one was, by the service's clock. Milliseconds since the epoch. */
  restedAt: number
}

/** How long a request may be on its way, and how far two clocks may differ. Milliseconds. */
export const longestDoubt = 30_000

/** How long lists have to show that a session waits anew before that is believed: they may lag. Milliseconds. */
const longestLag = 5_000

/** The shortest time for which lists are read: one that lags shows the answer by then. Milliseconds. */
export const shortestLook = longestLag + 1_000

/** What a reply in doubt becomes by a list. */
export function look(doubt: Doubt, shown: Shown, now: number): Reply {
  if (shown.isAnswered) return { ...doubt, is: 'settled' }
  // The first list may show rests that came before the request arrived.
  const before = doubt.before ?? new Set([...doubt.sent.rests, ...shown.rests])
  const isLater = isLaterThanKnown(doubt.sent, shown)
  // Whether the reply arrived or not, nobody waits for it.
  if (isLater && shown.isListed === false) return { ...doubt, is: 'settled' }
  const isNew = isNewer(doubt.sent, before, shown, now)
  if (!(isNew || isLater) || shown.isListed === undefined) return { ...doubt, before, askedSince: undefined }
  if (!shown.isListed) return { ...doubt, is: 'settled' }
  const askedSince = doubt.askedSince ?? now
  // A request that is over arrived before the list was read, or never.
  const isSure = isNew || (shown.showsClients && now >= doubt.sent.at + longestDoubt)
  return isSure && now - askedSince >= longestLag ? again(doubt) : { ...doubt, before, askedSince }
}

/** Whether the list has all rests that were known when the reply was sent, and then another one. */
function isLaterThanKnown(sent: Sending, { rests }: Shown): boolean {
  const last = [...rests].at(-1)
  if (last === undefined || sent.rests.size === 0 || sent.rests.has(last)) return false
  return [...sent.rests].every((rest) => rests.has(rest))
}

/**
 * Whether the last rest came after the reply, had that been taken: it was first shown later or, if an earlier run sent the
 * reply, it is later by more than clocks may differ, and the request is long over.
 */
function isNewer(
  sent: Sending,
  before: ReadonlySet<string>,
  { rests, restedAt }: Shown,
  now: number,
): boolean {
  const last = [...rests].at(-1)
  if (last === undefined || sent.rests.has(last)) return false
  const over = sent.at + longestDoubt
  return !before.has(last) || (restedAt > over && now > over)
}

/** What is due for a reply while the session waits for it. */
export function dutyOf({ is }: Reply): 'decide' | 'post' | 'look' | undefined {
  if (is === 'deciding') return 'decide'
  if (is === 'ready') return 'post'
  return is === 'in-doubt' ? 'look' : undefined
}

/** The result of a command that was killed with its run. */
export const interrupted: ToolResult = { text: 'interrupted, effect unknown', isError: true }

/** It may be given again: it is decided anew, but a command does not run again. */
function again(reply: Reply): Reply {
  const result = resultOf(reply)
  return result ? { is: 'ready', result } : { is: 'deciding' }
}

function resultOf(reply: Reply): ToolResult | undefined {
  if (reply.is === 'working') return interrupted
  return 'result' in reply ? reply.result : undefined
}

function sendingOf(reply: Reply): { sent: Sending; result?: ToolResult } {
  const sent = 'sent' in reply ? reply.sent : { at: Number.NaN, rests: new Set<string>() }
  return { sent, result: resultOf(reply) }
}
