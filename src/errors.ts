import type { DeliveryState, RetryAdvice, Sent } from './delivery-state.ts'

/** How a run can end, and its exit code then: `cli/topics/exit-codes.txt` says when. */
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

/** How far a call got, and what that means for sending it again. */
interface CallEnd {
  delivery?: DeliveryState
  sent?: Sent
  attempts?: number
  /** `never` if it is absent. */
  retry?: RetryAdvice
  /** The deadline made it. */
  deadline?: boolean
  /** The answer broke off: another one may be whole. */
  isCutOff?: boolean
  /** A second attempt cannot help: an unknown name, a bad certificate, `x-should-retry: false`. */
  isPermanent?: boolean
}

/** What the service answered. */
interface ServiceAnswer {
  status?: number
  /** Seconds. */
  retryAfter?: number
  requestId?: string
  /** The words of the service, unescaped. */
  serviceMessage?: string
  /** It is an error that came as the body of an answer with a status of success. */
  isErrorInSuccess?: boolean
  /** The error body: parsed JSON, or text. */
  body?: unknown
  /** The head of the answer that the body came with; names of headers in lower case. */
  head?: { status: number; statusText: string; headers: Record<string, string> }
  /** The exact bytes of that body, for `--raw`. */
  rawBody?: Uint8Array
}

/** What stands beside the message, for a person or a program. */
interface Advice {
  /** One line for the person: what this failure means for the work. */
  consequence?: string
  /** Every problem, if there is more than one. */
  problems?: string[]
  /** The tool uses that a session waits for. */
  pending?: string[]
  /** The command that resumes the work, without `parley`. */
  resume?: string[]
  /** The text of an answer that is not as it was asked for. */
  answer?: string
  /** The file, or the files, that keep what was paid for and could not be put where it was wanted. */
  kept?: string | string[] | undefined
}

export interface FailureDetails extends CallEnd, ServiceAnswer, Advice {}

/** A failure with a name: thrown anywhere, caught and printed once, in `main`. */
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

  /** The same failure with more details. */
  with(details: FailureDetails, message = this.message): CliError {
    return new CliError(this.kind, message, { ...this.details, ...details })
  }
}

/** The name and place of a bug. Its message may quote anything, so it is left out. */
export function describeBug(error: unknown): string {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error('no error')
  const frames = stack.slice(stack.indexOf(message) + message.length)
  const place = /^\s+at .*?([^\s()/\\]+:\d+:\d+)\)?$/m.exec(frames)?.[1] ?? 'an unknown place'
  return `${name} at ${place}`
}

/** Returns a `CliError` as it is, and makes any other error, which is a bug, one that an answer can be added to. */
export const asFailure = (error: unknown): CliError =>
  error instanceof CliError
    ? error
    : new CliError('unexpected', `a bug in parley: ${describeBug(error)}`, {
        consequence: 'please report this line, with the command but without its secrets',
      })

/** The reader of stdout went away (`| head -1`): an end, not a failure. */
export class OutputClosed extends Error {}

export const usageError = (message: string): CliError => new CliError('usage', message)

/** The deadline passed before anything was sent. */
export const deadlineBeforeSending = (message: string): CliError =>
  new CliError('not-sent', message, {
    sent: 'no',
    consequence: 'nothing was sent',
    retry: 'later',
    deadline: true,
  })

/**
 * What is followed, or a batch, stops if the deadline passes while stdout is written, or if it cut a request that `isCut`
 * knows. Any other error stays as it is.
 */
export function asStoppedFailure(error: unknown, isCut: (error: CliError) => boolean = () => false): unknown {
  if (!(error instanceof CliError)) return error
  const { kind, message, details } = error
  const isStop = (kind === 'file' && details.deadline) || isCut(error)
  return isStop ? new CliError('stopped', message, { ...details, retry: 'later' }) : error
}

/** A check may stop when it has found more problems than these. */
export const maxCountedProblems = 1000

/** A usage error with every problem that was found in an input; each names its place. */
export function usageErrorOfProblems(name: string, problems: string[]): CliError {
  if (problems.length <= 1) return usageError(`${name}: ${problems[0]}`)
  return new CliError('usage', `${name}: ${formatProblemCount(problems)}`, { problems })
}

export const formatProblemCount = ({ length }: readonly string[]): string =>
  `${length > maxCountedProblems ? `more than ${maxCountedProblems}` : length} problems`

/** The short words for a file system error (`no such file or directory`), without the path that Node adds. */
export function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  // `EXDEV: cross-device link not permitted, link 'a' -> 'b'`
  const words = /^E[A-Z0-9]+: ([^,]+)/.exec(message)?.[1]
  return (code && fileErrorTexts[code]) || words || code || message
}

/** Whether an error of the system is one of these, such as `ENOENT`. */
export const hasCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes((error as NodeJS.ErrnoException).code ?? '')

/** A file's failure with its name in the message; what is a `CliError` already stays as it is. */
export const asFileError = (error: unknown, name: string): CliError =>
  error instanceof CliError ? error : new CliError('file', `${name}: ${describeFileError(error)}`)

const fileErrorTexts: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'it already exists',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'it would be larger than a file may be (ulimit -f says how large that is)',
  ENAMETOOLONG: 'the name is too long',
  EPIPE: 'nothing reads it any more',
  EMFILE: 'too many files and connections are open (ulimit -n says how many may be)',
}
