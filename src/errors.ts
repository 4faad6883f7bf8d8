import { version } from '../package.json'
import type { DeliveryState, RetryAdvice, SentStatus } from './delivery-state.ts'

/** Exit codes by kind of failure. `cli/topics/exit-codes.txt` describes them. */
export const exitCodes = {
  unexpected: 1,
  usage: 2,
  credentials: 3,
  refused: 4,
  payment: 5,
  'rate-limited': 6,
  service: 7,
  response: 8,
  'not-sent': 9,
  unknown: 10,
  file: 11,
  waiting: 12,
  stuck: 13,
  denied: 14,
  stopped: 15,
} as const

export type FailureKind = keyof typeof exitCodes

export interface FailureDetails {
  delivery?: DeliveryState
  sent?: SentStatus
  attempts?: number
  session?: string | undefined
  /** Default: `never`. */
  retry?: RetryAdvice
  /** If true, repeating the command may send or bill something twice. Default: true if something was sent. */
  mayDuplicate?: boolean
  deadline?: boolean
  /** If true, a repeated request may get a complete answer. */
  isCutOff?: boolean
  /** If true, the answer does not match its schema, and `--schema-retries` may request another answer. */
  isMismatch?: boolean
  /**
   * If true, a second attempt cannot succeed, for example after an unknown host or an untrusted
   * certificate.
   */
  isPermanent?: boolean

  status?: number
  retryAfterSeconds?: number
  requestId?: string
  /** Message of the service, unescaped. */
  serviceMessage?: string
  /** Part of a 2xx response that contains the error. */
  errorIn?: 'body' | 'stream'
  /** Parsed JSON, or text. */
  body?: unknown
  /** Response that `--raw` and `api` print. */
  response?: { status: number; statusText: string; headers: Record<string, string>; bytes: Uint8Array }

  consequence?: string
  /**
   * Stderr of a failed command of the user. Only a person sees this text, because it may contain a secret.
   */
  commandErrorText?: string
  problems?: string[]
  pendingToolUseIds?: string[]
  /** Arguments of the resume command, without the word `parley`. */
  resumeArguments?: string[]
  /** The received answer; base64 for an image. If `savedFiles` names no file, the message contains the answer. */
  answer?: string
  savedFiles?: string[]
}

/** Any code may throw this expected failure. `main` prints it and exits with its code. */
export class CliError extends Error {
  readonly kind: FailureKind
  readonly details: FailureDetails

  constructor(kind: FailureKind, message: string, details: FailureDetails = {}) {
    super(message)
    this.kind = kind
    this.details = details
  }

  get exitCode(): number {
    return exitCodes[this.kind]
  }

  get mayDuplicate(): boolean {
    const { mayDuplicate, sent = 'no' } = this.details
    return mayDuplicate ?? sent !== 'no'
  }

  with(details: FailureDetails, message = this.message): CliError {
    return new CliError(this.kind, message, { ...this.details, ...details })
  }
}

/** The message may quote a secret, so only the place of the error is shown. */
function describeBug(error: unknown): string {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error('no error')
  const frames = stack.slice(stack.indexOf(message) + message.length)
  const place = /^\s+at .*?([^\s()/\\]+:\d+:\d+)\)?$/m.exec(frames)?.[1] ?? 'an unknown place'
  return `${name} at ${place}`
}

/**
 * Returns a `CliError` unchanged. Any code may run out of file descriptors (EMFILE, ENFILE), which is a
 * failure of kind `file`. Every other error is a bug. `state` describes what was sent and saved. The message
 * ends with `state`, because its last part may be a command to copy.
 */
export function toFailure(error: unknown, state?: string): CliError {
  if (error instanceof CliError) return error
  if (error instanceof Error && hasErrorCode(error, 'EMFILE', 'ENFILE'))
    return new CliError('file', describeFileError(error), { sent: 'unknown', consequence: state })
  return new CliError('unexpected', `a bug in parley ${version}: ${describeBug(error)}`, {
    sent: 'unknown',
    consequence: `please report this line, with the command but without its secrets${state ? `; ${state}` : ''}`,
  })
}

export const joinFailures = (output: unknown, answer: unknown): unknown =>
  output instanceof CliError && answer instanceof CliError && answer !== output && !answer.details.deadline
    ? output.with({}, `${output.message}; ${answer.message}`)
    : output

/** Thrown after the reader of stdout has closed it, as `| head -1` does. The run ends without a failure. */
export class OutputClosedError extends Error {}

export const usageError = (message: string): CliError => new CliError('usage', message)

export const createNotSentDeadlineError = (message: string): CliError =>
  new CliError('not-sent', message, { sent: 'no', retry: 'later', deadline: true })

/**
 * Returns a failure of kind `stopped` if the deadline ended a follower or a batch during a write to stdout.
 * Returns any other error unchanged.
 */
export function convertDeadlineFailure<T>(error: T): T | CliError {
  const isStop = error instanceof CliError && error.kind === 'file' && error.details.deadline
  return isStop ? new CliError('stopped', error.message, { ...error.details, retry: 'later' }) : error
}

export const maxCountedProblems = 1000

export function createUsageErrorFromProblems(name: string, problems: string[]): CliError {
  if (problems.length <= 1) return usageError(`${name}: ${problems[0]}`)
  return new CliError('usage', `${name}: ${formatProblemCount(problems)}`, { problems })
}

export const formatProblemCount = ({ length }: readonly unknown[]): string =>
  `${length > maxCountedProblems ? `more than ${maxCountedProblems}` : length} problems`

/** Returns a text such as `no such file or folder`, without the path in Node's message. */
export function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  // Node's message has a form such as `EXDEV: cross-device link not permitted, link 'a' -> 'b'`.
  const words = /^E[A-Z0-9]+: ([^,]+)/.exec(message)?.[1]
  return (code && fileErrorTexts[code]) || words || code || message
}

export const hasErrorCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes((error as NodeJS.ErrnoException).code ?? '')

export const toFileFailure = (error: unknown, name: string): CliError =>
  error instanceof CliError ? error : new CliError('file', `${name}: ${describeFileError(error)}`)

export async function convertFileErrors<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toFileFailure(error, name)
  }
}

const fileErrorTexts: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'it already exists',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file would exceed the size limit (ulimit -f shows the limit)',
  ENAMETOOLONG: 'the name is too long',
  EPIPE: 'its reader has closed the pipe',
  EMFILE: 'too many files and connections are open (ulimit -n shows the limit)',
}
