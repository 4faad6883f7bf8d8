import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { describeMoment } from '../../io/local-time.ts'
import { formatMoney } from '../../io/money.ts'
import { quoteWords, shellQuote } from '../../io/shell-quote.ts'
import type { Money } from '../../wire/sessions/usage.ts'
import { briefly } from '../plain-name.ts'
import { budgetCommand, sessionCommand } from '../session-command.ts'
import { needsResult, type SessionState } from '../session-state.ts'

/**
 * What a person sees before the first event: what is followed, or since when and why the session is idle. `isSent`
 * says that something was sent to it just now, `canStay` that the command has `--stay`.
 */
export function describeStart(
  { stop, stoppedAt, isEmpty }: SessionState,
  {
    session,
    isSent,
    stays,
    canStay,
    now,
  }: { session: string; isSent: boolean; stays: boolean; canStay: boolean; now: number },
): string {
  if (isEmpty && !isSent)
    return `nothing has happened in ${session} yet: waiting for its first event; Ctrl-C stops waiting`
  if (!stop) return `following ${session}; Ctrl-C stops following, the session goes on`
  const moment = stoppedAt && describeMoment(stoppedAt, now)
  if (stop.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${stop.reason})`
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''}`
  const why = stop.kind === 'waiting' ? 'tool uses wait for an answer' : stop.reason
  if (stays) return `${idle} (${why}); waiting for more events, Ctrl-C stops waiting`
  return `${idle} (${why})${stop.kind === 'waiting' || !canStay ? '' : '; --stay waits for more events'}`
}

/** How far the lines below a failure are indented. */
const indent = 2

/** Tool uses that wait, and the command of a run that can carry out those that need a result. */
interface OpenUses {
  ids: string[]
  resume?: readonly string[] | undefined
}

/**
 * The failure with which following ends while tool uses wait. On a terminal each has one line, and so has what to do,
 * which has `--pending` in place of the ids if it would be longer.
 */
export async function stillWaiting(
  context: Context,
  session: string,
  state: SessionState,
  { ids, resume }: OpenUses,
): Promise<CliError> {
  const { flags, host } = context
  const isLaidOut = host.stderr.isTerminal && !flags.errors
  const columns = isLaidOut ? host.stderr.columns || 80 : Infinity
  const { clip, widthOf } = isLaidOut ? await import('../../io/width.ts') : asItIs
  const forResults = ids.filter((id) => needsResult(state.toolUse(id)))
  const others = ids.filter((id) => !forResults.includes(id))
  const unnamed = others.filter((id) => state.toolUse(id)?.name === '')
  const named = others.filter((id) => !unnamed.includes(id))
  const isListed = state.unlisted.length === 0
  const fits = (text: string) => widthOf(text) <= columns - indent
  const ways = [
    ...(named.length > 0 ? [wayToConfirm(context, session, named, isListed, fits)] : []),
    // Nobody knows what an allowance would allow.
    ...(unnamed.length > 0 ? [wayToDeny(context, session, unnamed)] : []),
    ...waysToGiveResults(context, session, state, { ids: forResults, resume }),
  ]
  return new CliError('waiting', `${session} waits for an answer`, {
    sent: 'yes',
    pending: ids,
    problems: ids.map((id) => clip(summarizeToolUse(state, id), columns - indent)),
    consequence: ways.join('\n'),
  })
}

/** The failure with which following ends at the session's own budget: it goes on by itself once that allows more. */
export function budgetReached(
  context: Context,
  {
    session,
    budget,
    resume,
  }: { session: string; budget: Money | undefined; resume?: readonly string[] | undefined },
): CliError {
  const cap = budget ? ` of ${formatMoney(budget)}` : ''
  const more = budget && { ...budget, amount: budget.amount * 2n }
  const ways = [
    ...(more ? [`to raise it to ${formatMoney(more)}: ${budgetCommand(context, session, more)}`] : []),
    `to remove it: ${budgetCommand(context, session)}`,
  ]
  return new CliError('stuck', `${session} stopped: budget_reached, its budget${cap} is used up`, {
    sent: 'yes',
    problems: ways,
    resume: resume && [...resume],
  })
}

/** If nothing is laid out, no width counts. */
const asItIs = { clip: String, widthOf: () => 0 }

/** On a line of its own, so that the command can be pasted to the end of its line. */
const orDeny = '(or --deny in its place)'

function wayToConfirm(
  context: Context,
  session: string,
  ids: string[],
  isListed: boolean,
  fits: (text: string) => boolean,
): string {
  const command = sessionCommand(context, 'confirm', session)
  if (!isListed) return `it does not say which of them wait; to answer one: ${command} ID --allow\n${orDeny}`
  const named = `answer with: ${command} ${nameUses(ids)} --allow`
  return fits(named) ? `${named}\n${orDeny}` : `answer with: ${command} --pending`
}

const wayToDeny = (context: Context, session: string, ids: string[]): string =>
  `to deny ${ids.length === 1 ? 'it' : 'them'}: ${sessionCommand(context, 'confirm', session)} ${nameUses(ids)} --deny`

/** One way for each kind of tool use that needs a result. A run can carry it out, too, unless it has a command for it. */
function waysToGiveResults(
  context: Context,
  session: string,
  state: SessionState,
  { ids, resume }: OpenUses,
): string[] {
  const types = new Set(ids.map((id) => state.toolUse(id)?.type ?? ''))
  return [...types].map((type) => {
    const same = ids.filter((id) => (state.toolUse(id)?.type ?? '') === type)
    const way = `give a result with: ${resultCommand(context, session, type, same)}`
    const names = same.map((id) => state.toolUse(id)?.name ?? '')
    const name = names.find((each) => each !== '' && !hasCommand(context, each))
    if (!resume || name === undefined) return way
    const tool = isSafeWord(name) && !name.includes('=') ? name : 'NAME'
    return `${way}\nor have a command give it: ${quoteWords(['parley', ...resume, '--tool', `${tool}=COMMAND`])}`
  })
}

const hasCommand = ({ flags }: Context, tool: string): boolean =>
  flags.given.some(({ flag, value }) => flag === '--tool' && value?.startsWith(`${tool}=`))

/** The command that gives the result of tool uses of a type. */
export function resultCommand(context: Context, session: string, type: string, ids: string[]): string {
  const [id = ''] = ids
  const value = ids.length === 1 && isSafeWord(id) ? `${shellQuote(id)}=TEXT` : 'ID=TEXT'
  const flag = type === 'agent.custom_tool_use' ? '--custom-tool-result' : '--tool-result'
  return `${sessionCommand(context, 'send', session)} ${flag} ${value}`
}

/** Ids that could be cut, or be read as flags, are left to `--pending`. */
function nameUses(ids: string[]): string {
  const words = ids.map((id) => shellQuote(id)).join(' ')
  return words.length > 1000 || !ids.every(isSafeWord) ? '--pending' : words
}

const isSafeWord = (id: string) => id.length <= 1000 && !id.startsWith('-')

function summarizeToolUse(state: SessionState, id: string): string {
  const use = state.toolUse(id)
  if (!use) return briefly(id)
  const name = use.name === '' ? '(no name)' : briefly(use.name)
  return `${briefly(id)}: ${name} ${JSON.stringify(use.input ?? {})}`
}
