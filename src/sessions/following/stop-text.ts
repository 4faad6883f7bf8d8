import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { describeMoment } from '../../io/local-time.ts'
import { shellQuote } from '../../io/shell-quote.ts'
import { sessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'

/** What a person sees before the first event: what is followed, or since when and why the session is idle. */
export function describeStart(
  { stop, stoppedAt, isEmpty }: SessionState,
  { session, stays, now }: { session: string; stays: boolean; now: number },
): string {
  if (isEmpty)
    return `nothing has happened in ${session} yet: waiting for its first event; Ctrl-C stops waiting`
  if (!stop) return `following ${session}; Ctrl-C stops following, the session goes on`
  const moment = stoppedAt && describeMoment(stoppedAt, now)
  if (stop.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${stop.reason})`
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''}`
  const why = stop.kind === 'waiting' ? 'tool uses wait for an answer' : stop.reason
  if (stays) return `${idle} (${why}); waiting for more events, Ctrl-C stops waiting`
  return `${idle} (${why})${stop.kind === 'waiting' ? '' : '; --stay waits for more events'}`
}

/** How far the lines below a failure are indented. */
const indent = 2

/**
 * The failure with which following ends while tool uses wait. On a terminal each has one line, and so has the command,
 * which has `--pending` in place of the ids where it would be longer.
 */
export async function stillWaiting(
  context: Context,
  session: string,
  state: SessionState,
  ids: string[],
): Promise<CliError> {
  const { flags, host } = context
  const isLaidOut = host.stderr.isTerminal && !flags.errors
  const columns = isLaidOut ? host.stderr.columns || 80 : Infinity
  const command = sessionCommand(context, 'confirm', session)
  const named = `answer with: ${command} ${nameUses(ids)} --allow (or --deny)`
  const unnamed = `it does not say which of them wait; to answer one: ${command} ID --allow (or --deny)`
  const { clip, widthOf } = isLaidOut ? await import('../../io/width.ts') : asItIs
  return new CliError('waiting', `${session} waits for an answer`, {
    sent: 'yes',
    pending: ids,
    problems: ids.map((id) => clip(summarizeToolUse(state, id), columns - indent)),
    consequence:
      state.unlisted.length > 0
        ? unnamed
        : indent + widthOf(named) > columns
          ? `answer with: ${command} --pending`
          : named,
  })
}

/** Where nothing is laid out, no width counts. */
const asItIs = { clip: String, widthOf: () => 0 }

/** Ids that could be cut, or be read as flags, are left to `--pending`. */
function nameUses(ids: string[]): string {
  const words = ids.map((id) => shellQuote(id)).join(' ')
  return words.length > 1000 || /(^| )-/.test(words) ? '--pending' : words
}

function summarizeToolUse(state: SessionState, id: string): string {
  const use = state.toolUse(id)
  return use ? `${id}: ${use.name} ${JSON.stringify(use.input ?? {})}` : id
}
