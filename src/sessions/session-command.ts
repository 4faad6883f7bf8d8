import type { Context, TypedFlag } from '../context.ts'
import { quoteWords } from '../io/shell-quote.ts'
import { isSecretHeader } from '../secrets.ts'
import { getFlag, isRequestFlag, settingNames } from '../settings/table.ts'
import type { Money } from '../wire/sessions/usage.ts'
import { eventFlagNames } from './sending/event-flags.ts'

/** Flags that limit the time of one command. A command that only lists or sends needs none. */
const timeFlags = ['--timeout', '--deadline', '--connect-timeout']

/** Flags that select the service and its headers. Every command for the same session needs them. */
const serviceFlags = new Set([
  '--profile',
  '--header',
  '--beta',
  '--no-beta',
  '--no-validate',
  ...settingNames
    .filter(isRequestFlag)
    .map(getFlag)
    .filter((flag) => !timeFlags.includes(flag)),
])

/** Flags that `events follow` needs in addition. */
const followFlags = new Set([
  ...serviceFlags,
  ...timeFlags,
  ...['--history', '--stay', '--ids', '--raw'],
  ...['--quiet', '--verbose', '--errors', '--color', '--report'],
])

/**
 * Flags that a resume command omits or sets itself: their events were already sent, or the flags describe
 * only those events.
 */
const droppedFlags = new Set([
  '--input',
  '--file',
  '--session',
  '--no-stdin',
  '--fail-on-empty',
  '--after',
  ...eventFlagNames.map((name) => `--${name}`),
])

type Flags = Pick<Context, 'flags'>

/** Returns an `events` command for the session, quoted for a shell. */
export function formatSessionCommand(
  { flags }: Flags,
  verb: 'confirm' | 'follow' | 'list' | 'send',
  session: string,
): string {
  const kept = verb === 'follow' ? followFlags : serviceFlags
  return quoteWords(['parley', 'events', verb, ...pickWords(flags, kept), ...formatSessionFlag(session)])
}

/** Returns the command that lists the sessions of the same service. */
export const formatListCommand = ({ flags }: Flags): string =>
  quoteWords(['parley', 'sessions', 'list', ...pickWords(flags, serviceFlags)])

const pickWords = ({ given }: Context['flags'], kept: ReadonlySet<string>): string[] =>
  given.filter(({ flag }) => kept.has(flag)).flatMap(toWords)

/** Returns the command that sets a session's budget or, without `budget`, removes it. */
export function formatBudgetCommand({ flags: { given } }: Flags, session: string, budget?: Money): string {
  const kept = given.filter(({ flag }) => serviceFlags.has(flag) && !/^--(no-)?(beta|validate)$/.test(flag))
  const cap = budget && { amount: String(budget.amount), currency: budget.currency }
  const value = cap ? JSON.stringify({ type: 'limit', max_list_cost: cap }) : 'null'
  const path = `/v1/sessions/${encodeURIComponent(session)}`
  return quoteWords(['parley', 'api', 'agents', path, ...kept.flatMap(toWords), '--set', `budget=${value}`])
}

/**
 * Returns the command that resumes a run, without the word `parley`. It keeps the user's flags but not the
 * sent events. `words` are a message to send first, if the session needs input to continue. `after` is an
 * event id: the resumed run waits until the session contains that event.
 */
export function createResumeCommand(
  { flags, input }: Pick<Context, 'flags' | 'input'>,
  session: string,
  { words = [], after }: { words?: readonly string[]; after?: string | undefined },
): string[] {
  const kept = flags.given.filter(({ flag }) => !droppedFlags.has(flag))
  // Without a terminal, the resumed run would read stdin as a task, so it gets `--no-stdin`. A terminal is
  // needed for questions and is never read as a task.
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

/** Returns the note that is printed when parley stops following a session. */
export const describeUnfollowed = (context: Flags, session: string, flags = ''): string =>
  `the session continues; to follow it again: ${formatSessionCommand(context, 'follow', session)}${flags}`

/**
 * Returns the flag with the session's id. An id that begins with a hyphen is attached by `=`, because it
 * would otherwise be parsed as a flag.
 */
const formatSessionFlag = (session: string) =>
  session.startsWith('-') ? [`--session=${session}`] : ['-s', session]

function toWords({ flag, value }: TypedFlag): string[] {
  if (value === undefined) return [flag]
  const shown = flag === '--header' ? hideCredential(value) : value
  return shown.startsWith('-') ? [`${flag}=${shown}`] : [flag, shown]
}

/**
 * Replaces the value of a secret header, and a header from stdin, which a later command cannot read again.
 */
function hideCredential(line: string): string {
  if (line === '@-') return 'NAME: [redacted]'
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  return name !== '' && !line.startsWith('@') && isSecretHeader(name, line.slice(colon + 1).trim())
    ? `${name}: [redacted]`
    : line
}
