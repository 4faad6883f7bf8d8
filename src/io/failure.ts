import { type CliError, maxCountedProblems } from '../errors.ts'
import { disableInlineCiCommands, escapeControls, escapeControlsInJson, toOneLine } from './escape.ts'
import { quoteShellWords } from './shell-quote.ts'
import { plainStyle, type Style } from './style.ts'

const maxShownProblems = 20

export function renderFailure(error: CliError, style: Style, wrap: (line: string) => string): string {
  const { consequence, serviceMessage, requestId, resumeArguments, problems = [] } = error.details
  const { answer, savedFiles = [], commandErrorText } = error.details
  const [name = '', ...rest] = wrap(`parley: ${toOneLine(error.message, 2000)}`).split(' ')
  const lines = [[style.red(name), ...rest].join(' ')]
  for (const problem of problems.slice(0, maxShownProblems)) lines.push(wrap(`  ${toOneLine(problem)}`))
  const left = problems.length - maxShownProblems
  if (left > 0) lines.push(`  and ${problems.length > maxCountedProblems ? 'many' : left} more`)
  for (const line of consequence?.split('\n') ?? []) lines.push(wrap(`  ${line.trimStart()}`))
  if (resumeArguments) lines.push(...formatResumeLines(resumeArguments).map((line) => `  ${line}`))
  const addRemote = (label: string, text: string | undefined) => {
    // A label precedes the text of a service, so a reader does not mistake the text for parley's own.
    if (text) lines.push(wrap(`  ${label} ${text}`).replace(label, () => style.dim(label)))
  }
  addRemote('the command printed:', commandErrorText && toOneLine(commandErrorText))
  addRemote('the service says:', serviceMessage && toOneLine(serviceMessage))
  addRemote('request id:', requestId && toOneLine(requestId, 200))
  // A CI system reads some line starts as commands, so each line of the answer has a prefix.
  if (savedFiles.length === 0 && answer !== undefined)
    lines.push('  the answer:', `  | ${escapeControls(answer).replaceAll('\n', '\n  | ')}`)
  return `${lines.join('\n')}\n`
}

/** Puts the command on its own line, so that a person can copy it. */
export const formatResumeLines = (resumeArguments: readonly string[]): string[] => [
  'to resume:',
  quoteShellWords(['parley', ...resumeArguments]),
]

/** `signalExit`: exit status of a run that a signal ended. */
export function renderGithubAnnotation(failure: CliError, command: string, signalExit?: number): string {
  const shown = failure.with({ answer: undefined, commandErrorText: undefined })
  const text = renderFailure(shown, plainStyle, String)
    .replace(/^(?:parley: | {2})/gm, '')
    .trimEnd()
  const end =
    signalExit === undefined ? `${failure.kind} (exit ${failure.exitCode})` : `signal (exit ${signalExit})`
  return formatGithubAnnotation('error', `${command}: ${end}`, text)
}

export const formatGithubAnnotation = (level: 'error' | 'warning', title: string, text: string): string =>
  `::${level} title=${title.replace(/[%\r\n:,]/g, percentCode)}::${disableInlineCiCommands(text).replace(/[%\r\n]/g, percentCode)}\n`

const percentCode = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`

const maxBodyLength = 4096

/** `signalExit`: exit status of a run that a signal ended. */
export function renderFailureAsJson(failure: CliError, signalExit?: number): string {
  const signal = signalExit === undefined ? {} : { kind: 'signal', exit: signalExit }
  const error = { format: 1, ...createFailureRecord(failure), ...signal }
  return `${escapeControlsInJson(JSON.stringify({ error }))}\n`
}

/**
 * Formats the failure on one line. If the session waits for tool uses, the line ends with the commands that
 * answer them.
 */
export function formatFailureMessage({ message, details }: Pick<CliError, 'message' | 'details'>): string {
  const { serviceMessage, problems, pendingToolUseIds, consequence } = details
  const reason = serviceMessage ?? problems?.slice(0, maxShownProblems).join('; ')
  const text = toOneLine(reason ? `${message}: ${reason}` : message, 2000)
  return pendingToolUseIds && consequence
    ? `${text}; ${toOneLine(consequence.replaceAll('\n', '; '), 4000)}`
    : text
}

/**
 * Returns the failure as an object for JSON output. The body of the response is shortened. An answer is
 * shortened only if a file contains all of it.
 */
export function createFailureRecord({ kind, exitCode, message, mayDuplicate, details }: CliError): object {
  const { status, requestId, sent = 'no', retry = 'never', deadline, attempts } = details
  const { answer, savedFiles = [], body } = details
  const text = answer ?? body
  const isWhole = typeof text !== 'string' || (answer !== undefined && savedFiles.length === 0)
  return {
    kind,
    exit: exitCode,
    status,
    message: formatFailureMessage({ message, details }),
    retryAfter: details.retryAfterSeconds,
    requestId: requestId && toOneLine(requestId, 200),
    sent,
    safeToRetry: retry === 'later' && !mayDuplicate,
    retry,
    deadline,
    attempts,
    pending: details.pendingToolUseIds,
    hints: details.consequence?.split('\n').map((line) => toOneLine(line, 2000)),
    resume: details.resumeArguments,
    session: details.session && toOneLine(details.session, 200),
    kept: savedFiles.length > 1 ? savedFiles : savedFiles[0],
    body: isWhole ? text : text.slice(0, maxBodyLength),
  }
}
