import { type CliError, maxCountedProblems } from '../errors.ts'
import { disableInlineCiCommands, escapeControls, escapeControlsInJson, toOneLine } from './escape.ts'
import { quoteWords } from './shell-quote.ts'
import type { Style } from './style.ts'

const maxShownProblems = 20

export function renderFailure(error: CliError, style: Style, wrap: (line: string) => string): string {
  const { consequence, serviceMessage, requestId, resume, problems = [] } = error.details
  const { answer, kept } = error.details
  const [name = '', ...rest] = wrap(`parley: ${toOneLine(error.message, 2000)}`).split(' ')
  const lines = [[style.red(name), ...rest].join(' ')]
  for (const problem of problems.slice(0, maxShownProblems)) lines.push(wrap(`  ${toOneLine(problem)}`))
  const left = problems.length - maxShownProblems
  if (left > 0) lines.push(`  and ${problems.length > maxCountedProblems ? 'many' : left} more`)
  for (const line of consequence?.split('\n') ?? []) lines.push(wrap(`  ${line.trimStart()}`))
  if (resume) lines.push(...formatResumeLines(resume).map((line) => `  ${line}`))
  const addRemote = (label: string, text: string | undefined) => {
    // A label precedes the text of a service, so a reader does not mistake the text for parley's own.
    if (text) lines.push(wrap(`  ${label} ${text}`).replace(label, () => style.dim(label)))
  }
  addRemote('the service says:', serviceMessage && toOneLine(serviceMessage))
  addRemote('request id:', requestId && toOneLine(requestId, 200))
  // A CI system reads some texts at the start of a line as commands, so each line of the answer has a prefix.
  if (kept === undefined && answer !== undefined)
    lines.push('  the answer:', `  | ${escapeControls(answer).replaceAll('\n', '\n  | ')}`)
  return `${lines.join('\n')}\n`
}

/** Puts the command on its own line, so that a person can copy it. */
export function formatResumeLines(resume: readonly string[]): string[] {
  const isRedacted = resume.some((word) => word.endsWith('[redacted]'))
  const about = isRedacted ? 'to resume, fill in the [redacted] words:' : 'to resume:'
  return [about, quoteWords(['parley', ...resume])]
}

export function renderGithubAnnotation(
  { kind, exitCode, message, details }: CliError,
  command: string,
): string {
  const { problems = [], consequence, resume, serviceMessage } = details
  const service = serviceMessage && `the service says: ${toOneLine(serviceMessage)}`
  const lines = [
    toOneLine(message, 2000),
    ...problems.slice(0, maxShownProblems).map((each) => toOneLine(each)),
  ]
  const text = [...lines, consequence, ...(resume ? formatResumeLines(resume) : []), service]
    .filter((line) => line !== undefined)
    .join('\n')
  const title = `${command}: ${kind} (exit ${exitCode})`.replace(/[%\r\n:,]/g, percentCode)
  return `::error title=${title}::${disableInlineCiCommands(text).replace(/[%\r\n]/g, percentCode)}\n`
}

const percentCode = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`

const maxBodyLength = 4096

export const renderFailureAsJson = (failure: CliError): string =>
  `${escapeControlsInJson(JSON.stringify({ error: { format: 1, ...createFailureRecord(failure) } }))}\n`

/**
 * Formats the failure on one line. If the session waits for tool uses, the line ends with the commands that
 * answer them.
 */
export function formatFailureMessage({ message, details }: Pick<CliError, 'message' | 'details'>): string {
  const { serviceMessage, problems, pending, consequence } = details
  const reason = serviceMessage ?? problems?.slice(0, maxShownProblems).join('; ')
  const text = toOneLine(reason ? `${message}: ${reason}` : message, 2000)
  return pending && consequence ? `${text}; ${toOneLine(consequence.replaceAll('\n', '; '), 4000)}` : text
}

/**
 * Returns the failure as an object for JSON output. The body of the response is shortened. An answer is
 * shortened only if a file contains all of it.
 */
export function createFailureRecord({ kind, exitCode, message, mayDuplicate, details }: CliError): object {
  const { status, retryAfter, requestId, sent = 'no', retry = 'never', deadline, attempts } = details
  const { answer, kept, body } = details
  const text = answer ?? body
  const isWhole = typeof text !== 'string' || (answer !== undefined && kept === undefined)
  return {
    kind,
    exit: exitCode,
    status,
    message: formatFailureMessage({ message, details }),
    retryAfter,
    requestId: requestId && toOneLine(requestId, 200),
    sent,
    safeToRetry: retry === 'later' && !mayDuplicate,
    retry,
    deadline,
    attempts,
    pending: details.pending,
    hints: details.consequence?.split('\n').map((line) => toOneLine(line, 2000)),
    resume: details.resume,
    session: details.session && toOneLine(details.session, 200),
    kept,
    body: isWhole ? text : text.slice(0, maxBodyLength),
  }
}
