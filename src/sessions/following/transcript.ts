import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { printIds } from '../listing/rows.ts'
import { goesOn, sessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import type { Follower } from './follower.ts'
import { describeStart, stillWaiting } from './stop-text.ts'

export interface TranscriptOptions {
  session: string
  /** Prints each new event. */
  print(item: EventItem): Promise<void>
  /** stdout is for the ids of the tool uses that wait. */
  ids?: boolean
  /** The session is followed until it is terminated or deleted. */
  stays?: boolean
  /** What an interrupted run says first. */
  certain?: string
  /** Events that were sent: only what comes after them is printed. */
  sent?: readonly SessionEvent[]
  /** Called after each part of news; may answer what waits. */
  react?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  /** What becomes of the session when the run is interrupted; by default it can be followed again. */
  fate?: string
}

/**
 * Prints a session's events until it stops. Throws a `CliError` where it stopped before its work was done: kinds
 * `waiting` and `stuck`.
 */
export async function printTranscript(
  context: Context,
  follower: Follower,
  options: TranscriptOptions,
): Promise<void> {
  const { session, print, ids = false, stays = false, sent, react } = options
  const { state } = follower
  const printed = new Set<string>()
  let hasBegun = false
  for await (const items of follower.news(sent)) {
    for (const item of items) await print(item)
    if (!hasBegun) begin(context, state, options)
    hasBegun = true
    await react?.(items)
    if (ids && stays) await printWaiting(context, state, printed)
  }
  if (follower.isUndone)
    context.warn('the service does not show that it has worked on what was sent: its answer may come later')
  if (ids) await printWaiting(context, state, printed)
  await context.output.flush()
  const failure = await failureOf(context, state, session)
  if (failure) throw failure
}

/** Says on a terminal what is followed, or why the session is idle; anywhere that nothing has happened in it. */
function begin(
  context: Context,
  state: SessionState,
  { session, stays = false, sent, certain, fate = goesOn(context, session) }: TranscriptOptions,
): void {
  context.calls.sayInstead(() => {
    if (!stays || !state.stop) return certain === undefined ? fate : `${certain}; ${fate}`
    return `the session is idle; to follow it again: ${sessionCommand(context, 'follow', session)}`
  })
  if (!context.host.stderr.isTerminal && (!state.isEmpty || sent)) return
  context.note(describeStart(state, { session, stays, now: context.timers.now() }))
}

/** Prints the ids of the tool uses that wait and were not printed yet. */
async function printWaiting(context: Context, { stop }: SessionState, printed: Set<string>): Promise<void> {
  if (stop?.kind !== 'waiting') return
  const fresh = stop.ids.filter((id) => !printed.has(id))
  for (const id of fresh) printed.add(id)
  await printIds(
    context,
    fresh.map((id) => ({ id })),
  )
}

async function failureOf(
  context: Context,
  state: SessionState,
  session: string,
): Promise<CliError | undefined> {
  const { stop } = state
  if (stop?.kind === 'waiting') return stillWaiting(context, session, state, stop.ids)
  if (stop?.kind !== 'stuck' && stop?.kind !== 'ended') return undefined
  return new CliError('stuck', `${session} stopped: ${stop.reason}`, {
    sent: 'yes',
    serviceMessage: stop.why,
  })
}
