import type { Context, TypedFlag } from '../context.ts'
import { quoteWords } from '../io/shell-quote.ts'
import { isSecretHeader } from '../secrets.ts'
import { getFlag, isRequestFlag, settingNames } from '../settings/table.ts'
import type { Money } from '../wire/sessions/usage.ts'
import { eventFlagNames } from './sending/event-flags.ts'

/** Flags that locate a session: they apply to every command of this session. */
const placing = new Set([
  '--profile',
  '--header',
  '--beta',
  '--no-beta',
  '--no-validate',
  ...settingNames.filter(isRequestFlag).map(getFlag),
])

/** Flags that also control how a session is followed. */
const following = new Set([
  ...placing,
  ...['--history', '--stay', '--ids', '--raw'],
  ...['--quiet', '--verbose', '--errors', '--color', '--report'],
])

/**
 * Flags of `events run` whose events or files were sent, or that describe them, and flags that every resume
 * command starts with.
 */
const spent = new Set([
  '--input',
  '--file',
  '--session',
  '--no-stdin',
  '--fail-on-empty',
  '--after',
  ...eventFlagNames.map((name) => `--${name}`),
])

type Flags = Pick<Context, 'flags'>

/** Returns a command for the same session that a person can paste. `more` are its own arguments. */
export function formatSessionCommand(
  { flags }: Flags,
  verb: 'confirm' | 'follow' | 'list' | 'send',
  session: string,
): string {
  const kept = verb === 'follow' ? following : placing
  return quoteWords(['parley', 'events', verb, ...pickWords(flags, kept), ...formatSessionFlag(session)])
}

/** Returns the command that lists the sessions of the same service. */
export const formatListCommand = ({ flags }: Flags): string =>
  quoteWords(['parley', 'sessions', 'list', ...pickWords(flags, placing)])

const pickWords = ({ given }: Context['flags'], kept: ReadonlySet<string>): string[] =>
  given.filter(({ flag }) => kept.has(flag)).flatMap(toWords)

/** Returns the command that changes a session's budget, or removes it. */
export function formatBudgetCommand({ flags }: Flags, session: string, budget?: Money): string {
  const place = flags.given.filter(({ flag }) => placing.has(flag) && !/^--(no-)?(beta|validate)$/.test(flag))
  const cap = budget && { amount: String(budget.amount), currency: budget.currency }
  const value = cap ? JSON.stringify({ type: 'limit', max_list_cost: cap }) : 'null'
  const path = `/v1/sessions/${encodeURIComponent(session)}`
  return quoteWords(['parley', 'api', 'agents', path, ...place.flatMap(toWords), '--set', `budget=${value}`])
}

/**
 * Returns the command that resumes a run, without `parley`: every given flag except the sent events. `words`
 * are sent first if the session needs input to continue. `after` is the id of an event that the session has to show first.
 */
export function createResumeCommand(
  { flags, input }: Pick<Context, 'flags' | 'input'>,
  session: string,
  { words = [], after }: { words?: readonly string[]; after?: string | undefined },
): string[] {
  const kept = flags.given.filter(({ flag }) => !spent.has(flag))
  // Without a terminal, the command would read words from stdin, so it gets `--no-stdin`. A terminal is not
  // read for words, and a person can be prompted there.
  const stdin = input.stdinKind === 'terminal' ? [] : ['--no-stdin']
  const last = after === undefined ? [] : toWords({ flag: '--after', value: after })
  return [
    'events',
    'run',
    ...words,
    ...formatSessionFlag(session),
    ...stdin,
    ...kept.flatMap(toWords),
    ...last,
  ]
}

/** Describes a session that is no longer followed. */
export const describeUnfollowed = (context: Flags, session: string, flags = ''): string =>
  `the session continues; to follow it again: ${formatSessionCommand(context, 'follow', session)}${flags}`

/**
 * Returns the flag with the session's id. A separate value that begins with a hyphen would be read as a flag,
 * so the value is attached.
 */
const formatSessionFlag = (session: string) =>
  session.startsWith('-') ? [`--session=${session}`] : ['-s', session]

function toWords({ flag, value }: TypedFlag): string[] {
  if (value === undefined) return [flag]
  const shown = flag === '--header' ? hideCredential(value) : value
  return shown.startsWith('-') ? [`${flag}=${shown}`] : [flag, shown]
}

/** A header value from stdin cannot be read again, so a placeholder replaces the value. */
function hideCredential(line: string): string {
  if (line === '@-') return 'NAME: [redacted]'
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  return name !== '' && !line.startsWith('@') && isSecretHeader(name, line.slice(colon + 1).trim())
    ? `${name}: [redacted]`
    : line
}
