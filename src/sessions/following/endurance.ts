import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { oneLine } from '../../io/escape.ts'

/** How long a service may be away without one answer. Milliseconds. */
const longestAbsence = 5 * 60_000

/** How many times in a row the service may answer what is not understood. */
const mostFailures = 5

/** The shortest and the longest wait before the next attempt. Milliseconds. */
const [shortestWait, longestWait] = [250, 8000]

const awayKinds = ['not-sent', 'unknown', 'service', 'rate-limited']

/** How long a service that is away, or talks nonsense, is waited for. */
export class Endurance {
  readonly #context: Pick<Context, 'note' | 'timers'>
  readonly #caller: Pick<Caller, 'deadline' | 'forgetSecrets'>
  #lastAnswer: number
  #attempts = 0
  #failures = 0
  #hasAskedAgain = false
  /** What the service asked to be left alone for. Milliseconds. */
  #askedWait = 0

  constructor(context: Pick<Context, 'note' | 'timers'>, caller: Pick<Caller, 'deadline' | 'forgetSecrets'>) {
    this.#context = context
    this.#caller = caller
    this.#lastAnswer = context.timers.now()
  }

  /** Milliseconds until the deadline. */
  get left(): number {
    const { deadline } = this.#caller
    return deadline > 0 ? deadline - this.#context.timers.now() : Infinity
  }

  /** The service answered. */
  addAnswer(): void {
    this.#lastAnswer = this.#context.timers.now()
    this.#askedWait = 0
  }

  /** The service brought something new: whatever went wrong before is forgotten. */
  addProgress(): void {
    this.addAnswer()
    this.#attempts = 0
    this.#failures = 0
    this.#hasAskedAgain = false
  }

  /** Throws a failure that does not pass by waiting, and any after the deadline; shows others on stderr. */
  endure(error: unknown): void {
    if (!(error instanceof CliError)) throw error
    this.checkDeadline()
    if (!this.#isPassing(error)) throw error
    const { serviceMessage: said } = error.details
    this.#context.note(`${error.message}${said ? `: ${oneLine(said)}` : ''}; trying again`)
  }

  /** Throws a `CliError` after the deadline. */
  checkDeadline(): void {
    if (this.left > 0) return
    throw new CliError('stopped', 'the deadline passed while the session was followed', { sent: 'yes' })
  }

  /** Waits before the next attempt, longer each time. */
  async wait(): Promise<void> {
    const wait = Math.max(Math.min(shortestWait * 2 ** this.#attempts++, longestWait), this.#askedWait)
    this.#askedWait = 0
    await this.#context.timers.wait(Math.min(wait, Math.max(this.left, 0)))
  }

  /** Whether the next attempt may go better. */
  #isPassing({ kind, details }: CliError): boolean {
    if (kind === 'response') return !details.isPermanent && ++this.#failures <= mostFailures
    if (details.isPermanent && details.status !== undefined) return false
    this.#askedWait = (details.retryAfter ?? 0) * 1000
    if (awayKinds.includes(kind)) {
      const absence = this.#context.timers.now() - this.#lastAnswer
      return this.#askedWait <= longestAbsence && absence < longestAbsence
    }
    // Credentials that a command gave may have expired: it is asked once more.
    if (details.status !== 401 || this.#hasAskedAgain) return false
    this.#hasAskedAgain = this.#caller.forgetSecrets()
    return this.#hasAskedAgain
  }
}
