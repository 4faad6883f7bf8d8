import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { describeMoment } from '../../io/local-time.ts'
import { shellQuote } from '../../io/shell-quote.ts'
import { sessionCommand } from '../session-command.ts'
import type { SessionState, ToolUse } from '../session-state.ts'

/** What a person is told before the first event: what is followed, or since when and why the session is idle. */
export function describeStart(
  { rest, restingSince }: SessionState,
  { session, stays, now }: { session: string; stays: boolean; now: number },
): string {
  if (!rest) return `following ${session}; Ctrl-C stops following, the session goes on`
  const moment = restingSince && describeMoment(restingSince, now)
  if (rest.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${rest.reason})`
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''}`
  const why = rest.kind === 'waiting' ? 'tool uses wait for an answer' : rest.reason
  if (stays) return `${idle} (${why}); waiting for what comes next, Ctrl-C leaves`
  return `${idle} (${why})${rest.kind === 'waiting' ? '' : '; --stay waits for what comes next'}`
}

/** How far in the lines below a failure begin. */
const indent = 2

/**
 * The failure with which following ends while tool uses wait. On a terminal each has one line, and so has the command,
 * which asks about them where it would be longer.
 */
export async function stillWaiting(
  context: Context,
  session: string,
  { ids, toolUse }: { ids: string[]; toolUse: SessionState['toolUse'] },
): Promise<CliError> {
  const { flags, host } = context
  const isLaidOut = host.stderr.isTerminal && !flags.errors
  const columns = isLaidOut ? host.stderr.columns || 80 : Infinity
  const command = sessionCommand(context, 'confirm', session)
  const named = `answer with: ${command} ${nameUses(ids)} --allow (or --deny)`
  const { clip, widthOf } = isLaidOut ? await import('../../io/width.ts') : asItIs
  return new CliError('waiting', `${session} waits for an answer`, {
    sent: 'yes',
    pending: ids,
    problems: ids.map((id) => clip(describeUse(id, toolUse(id)), columns - indent)),
    consequence: indent + widthOf(named) > columns ? `answer with: ${command} --pending` : named,
  })
}

/** Where nothing is laid out, no width counts. */
const asItIs = { clip: String, widthOf: () => 0 }

/** So many ids that they would be cut are left to be asked for. */
function nameUses(ids: string[]): string {
  const words = ids.map((id) => shellQuote(id)).join(' ')
  return words.length > 1000 || /(^| )-/.test(words) ? '--pending' : words
}

const describeUse = (id: string, use: ToolUse | undefined) =>
  use ? `${id}: ${use.name} ${JSON.stringify(use.input ?? {})}` : id
