import { CliError, mostCounted } from '../errors.ts'
import { escapeJson, oneLine } from './escape.ts'
import type { Style } from './style.ts'

/** How many problems of one input are told. */
const mostProblems = 20

/** A failure as a person reads it: what failed, what that means, what the service said. */
export function renderFailure(error: CliError, style: Style): string {
  const { consequence, serviceMessage, requestId, problems = [] } = error.details
  const lines = [`${style.red('parley:')} ${oneLine(error.message, 2000)}`]
  for (const problem of problems.slice(0, mostProblems)) lines.push(`  ${oneLine(problem)}`)
  const left = problems.length - mostProblems
  if (left > 0) lines.push(`  and ${problems.length > mostCounted ? 'many' : left} more`)
  if (consequence) lines.push(`  ${consequence}`)
  if (serviceMessage) lines.push(`  ${style.dim('the service says:')} ${oneLine(serviceMessage)}`)
  if (requestId) lines.push(`  ${style.dim('request id:')} ${oneLine(requestId, 200)}`)
  return `${lines.join('\n')}\n`
}

/** What is shown of a body that is not JSON, in characters. */
const longestText = 4096

/** A failure as one line of JSON, for `--errors json`. */
export function renderFailureAsJson({ kind, exitCode, message, details }: CliError): string {
  const { status, retryAfter, requestId, sent = 'no', safeToRetry = false, attempts, body } = details
  const said = details.serviceMessage ?? details.problems?.slice(0, mostProblems).join('; ')
  const shownBody = typeof body === 'string' ? body.slice(0, longestText) : body
  return `${escapeJson(
    JSON.stringify({
      error: {
        kind,
        exit: exitCode,
        status,
        message: oneLine(said ? `${message}: ${said}` : message, 2000),
        retryAfter,
        requestId: requestId && oneLine(requestId, 200),
        sent,
        safeToRetry,
        attempts,
        pending: details.pending,
        body: shownBody,
      },
    }),
  )}\n`
}

/** A failure whose texts hold no secret, before any of them is cut: half a secret is one too. */
export function redactFailure(error: CliError, secrets: Iterable<string>): CliError {
  const { serviceMessage, requestId, problems, body } = error.details
  return new CliError(error.kind, redact(error.message, secrets), {
    ...error.details,
    ...(serviceMessage === undefined ? {} : { serviceMessage: redact(serviceMessage, secrets) }),
    ...(requestId === undefined ? {} : { requestId: redact(requestId, secrets) }),
    ...(problems === undefined ? {} : { problems: problems.map((problem) => redact(problem, secrets)) }),
    ...(body === undefined ? {} : { body: redactJson(body, secrets) }),
  })
}

/** How deep a body is shown: what is nested much deeper could not be written out again. */
const deepest = 200

function redactJson(value: unknown, secrets: Iterable<string>, depth = 0): unknown {
  if (typeof value === 'string') return redact(value, secrets)
  if (typeof value !== 'object' || value === null) return value
  if (depth === deepest) return '…'
  const inner = (each: unknown) => redactJson(each, secrets, depth + 1)
  if (Array.isArray(value)) return value.map(inner)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inner(each)]))
}

/**
 * Takes secrets out of text that goes to stderr: those of this run, which a service may repeat, and what a URL
 * holds of its own.
 */
export function redact(text: string, secrets: Iterable<string>): string {
  let shown = text
  for (const secret of secrets) {
    if (secret.length < 4) continue
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]) {
      shown = shown.replaceAll(form, '[redacted]')
    }
  }
  return shown
    .replace(/((?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2})[^\s/\\?#"]*@/gi, '$1[redacted]@')
    .replace(/([?&#][\w.-]*(?:key|token|secret|password|signature)=)[^\s&#"'\\]+/gi, '$1[redacted]')
}
