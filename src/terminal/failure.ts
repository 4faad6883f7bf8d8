import type { CliError } from '../errors.ts'
import { escapeJson, oneLine } from './escape.ts'
import type { Style } from './style.ts'

/** How many problems of one input are told. */
const mostProblems = 20

/** A failure as a person reads it: what failed, what that means, what the service said. */
export function renderFailure(error: CliError, style: Style): string {
  const { consequence, serviceMessage, problems = [] } = error.details
  const lines = [`${style.red('parley:')} ${oneLine(error.message, 2000)}`]
  for (const problem of problems.slice(0, mostProblems)) lines.push(`  ${oneLine(problem)}`)
  if (problems.length > mostProblems) lines.push(`  and ${problems.length - mostProblems} more`)
  if (consequence) lines.push(`  ${consequence}`)
  if (serviceMessage) lines.push(`  ${style.dim('the service says:')} ${oneLine(serviceMessage)}`)
  return `${lines.join('\n')}\n`
}

/** A failure as one line of JSON, for `--errors json` (`cli.md`, Failure). */
export function renderFailureAsJson({ kind, exitCode, message, details }: CliError): string {
  const { status, retryAfter, requestId, sent = 'no', safeToRetry = false, attempts, body } = details
  const said = details.serviceMessage ?? details.problems?.slice(0, mostProblems).join('; ')
  return `${escapeJson(
    JSON.stringify({
      error: {
        kind,
        exit: exitCode,
        status,
        message: oneLine(said ? `${message}: ${said}` : message, 2000),
        retryAfter,
        requestId,
        sent,
        safeToRetry,
        attempts,
        body,
      },
    }),
  )}\n`
}

/** Takes secrets out of text that goes to stderr: a service may repeat them in an error. */
export function redact(text: string, secrets: Iterable<string>): string {
  let shown = text
  for (const secret of secrets) if (secret.length >= 4) shown = shown.replaceAll(secret, '[redacted]')
  return shown
}
