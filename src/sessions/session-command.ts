import type { CommandLineFlag } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { quoteShellWords } from '../io/shell-quote.ts'
import { isSecretHeader } from '../secrets.ts'
import { getSettingFlag, hasRequestFlag, settingNames } from '../settings/table.ts'
import { eventFlagNames } from './sending/event-flags.ts'

/**
 * Flags that only limit the time of a request. If parley prints a command that lists or sends events, the
 * command omits them.
 */
const timeLimitFlags = ['--timeout', '--deadline', '--connect-timeout', '--retries']

const serviceFlags = new Set([
  '--profile',
  '--header',
  '--beta',
  '--no-beta',
  '--no-validate',
  ...settingNames
    .filter(hasRequestFlag)
    .map(getSettingFlag)
    .filter((flag) => !timeLimitFlags.includes(flag)),
])

const followFlags = new Set([
  ...serviceFlags,
  ...timeLimitFlags,
  ...['--history', '--stay', '--raw'],
  ...['--quiet', '--verbose', '--errors', '--color', '--report'],
])

/**
 * Flags that parley does not copy into a resume command. Most of them describe events that parley has already
 * sent, or have no effect on a run. `createResumeCommand` adds `--session`, `--no-stdin` and `--after`
 * itself.
 */
const uncopiedFlags = new Set([
  '--input',
  '--file',
  '--session',
  '--no-stdin',
  '--no-pager',
  '--fail-on-empty',
  '--after',
  ...eventFlagNames.map((name) => `--${name}`),
])

const flagsRequiringTool = ['--tool-timeout', '--fail-on-tool-error']

type Flags = Pick<Context, 'flags'>

interface CommandTarget {
  context: Flags
  parts: { params: { session: string } }
}

export function formatSessionCommand(
  { context: { flags }, parts }: CommandTarget,
  verb: 'confirm' | 'follow' | 'list' | 'send',
): string {
  const names = verb === 'follow' ? followFlags : serviceFlags
  const copied = filterFlags(flags, (flag) => names.has(flag))
  return quoteShellWords(['parley', 'events', verb, ...copied, ...formatSessionFlag(parts.params.session)])
}

export const formatListSessionsCommand = ({ flags }: Flags): string =>
  quoteShellWords(['parley', 'sessions', 'list', ...filterFlags(flags, (flag) => serviceFlags.has(flag))])

const filterFlags = (
  { given }: Pick<Context['flags'], 'given'>,
  isWanted: (flag: string) => boolean,
): string[] => given.filter(({ flag }) => isWanted(flag)).flatMap(toArgs)

export const formatBudgetCommand = ({ context, parts }: CommandTarget, budgetJson: string): string =>
  quoteShellWords([
    ...['parley', 'api', 'agents', `/v1/sessions/${encodeURIComponent(parts.params.session)}`],
    ...filterFlags(
      context.flags,
      (flag) => serviceFlags.has(flag) && !/^--(no-)?(beta|validate)$/.test(flag),
    ),
    ...['--set', `budget=${budgetJson}`],
  ])

/**
 * Returns the command that resumes a run, without the word `parley`. The command keeps the user's flags that
 * affect the rest of the run, except the `--tool` flags of the tools in `withoutTools`. If the session needs
 * input to continue, the resumed run sends `message` first. With `after`, the resumed run waits until the
 * session contains the event with this id.
 */
export function createResumeCommand(
  { flags, host, input }: Pick<Context, 'flags' | 'host' | 'input'>,
  session: string,
  {
    message,
    after,
    withoutTools = [],
  }: { message?: string; after?: string | undefined; withoutTools?: readonly string[] },
): string[] {
  // If stdin is not a terminal, the resumed run would read a task from it, so the command has `--no-stdin`.
  // `--no-stdin` also prevents prompts, so the command omits it if a person will probably run it at a
  // terminal.
  const mayPrompt = input.stdinKind === 'terminal' || (input.readsStdin && host.stderr.isTerminal)
  const stdin = mayPrompt ? [] : ['--no-stdin']
  const last = after === undefined ? [] : toArgs({ flag: '--after', value: after })
  const isKeptTool = ({ flag, value = '' }: CommandLineFlag) =>
    flag === '--tool' && !withoutTools.some((name) => value.startsWith(`${name}=`))
  const hasTools = flags.given.some(isKeptTool)
  const given = flags.given.filter((each) =>
    each.flag === '--tool' ? isKeptTool(each) : hasTools || !flagsRequiringTool.includes(each.flag),
  )
  return [
    'events',
    'run',
    ...(message === undefined ? [] : [message]),
    ...formatSessionFlag(session),
    ...stdin,
    ...filterFlags({ given }, (flag) => !uncopiedFlags.has(flag)),
    ...last,
  ]
}

/** If the session is not idle, no event proves that it continues after parley ends. */
export const describeFollowCommand = (command: string, isIdle = false): string =>
  `the session ${isIdle ? 'is idle' : 'may continue'}; to follow it again: ${command}`

/** An id that begins with a hyphen is attached by `=`, because it would otherwise be parsed as a flag. */
const formatSessionFlag = (session: string) =>
  session.startsWith('-') ? [`--session=${session}`] : ['-s', session]

function toArgs({ flag, value }: CommandLineFlag): string[] {
  if (value === undefined) return [flag]
  const shown = flag === '--header' ? redactHeader(value) : value
  return shown.startsWith('-') ? [`${flag}=${shown}`] : [flag, shown]
}

/**
 * Redacts the value of a secret header. Redacts a header from stdin too, because the printed command cannot
 * read the same stdin again.
 */
function redactHeader(line: string): string {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = line.slice(colon + 1).trim()
  if (value === '@-') return `${name || 'NAME'}: [redacted]`
  const isInFile = line.startsWith('@') || /^@(?!@)/.test(value)
  return name !== '' && !isInFile && isSecretHeader(name, value) ? `${name}: [redacted]` : line
}
