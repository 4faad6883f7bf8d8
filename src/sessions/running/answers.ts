import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Answer } from './answer-events.ts'
import { Fates } from './fates.ts'
import { postOnce } from './posting.ts'
import type { RunningSession } from './running-session.ts'

/** Posts answers, each once, and finds out what became of those that nobody confirmed. */
export class Answers {
  readonly #session: RunningSession
  readonly #fates: Fates
  /** Those that this run has posted, or has asked the list about. */
  readonly #done = new Set<string>()
  /** Those that an earlier run began to answer. */
  readonly #doubtful = new Map<string, Answer['call']>()
  /** Where the session had stopped before this run did anything. */
  readonly #stopsBefore: ReadonlySet<string>

  constructor(session: RunningSession) {
    this.#session = session
    this.#fates = new Fates(session)
    this.#stopsBefore = new Set(session.state.stops)
  }

  /** What the service's list says now; nothing where the service is away for a moment. */
  look = () => this.#fates.look()

  /** Whether it may be posted. What an earlier run began to answer is left to `settleDoubtful`. */
  mayPost(call: Answer['call']): boolean {
    if (this.#fates.mayBeRepeated(call.id)) return true
    if (this.#done.has(call.id)) return false
    const isDoubtful = this.#session.audit.earlier.sent.has(call.id)
    if (isDoubtful) this.#doubtful.set(call.id, call)
    return !isDoubtful
  }

  /**
   * Waits until it is known what became of the answers that earlier runs had begun; returns whether there were any.
   * Throws as `post` does.
   */
  async settleDoubtful(): Promise<boolean> {
    const calls = [...this.#doubtful.values()]
    this.#doubtful.clear()
    for (const { id } of calls) this.#done.add(id)
    if (calls.length > 0) await this.#fates.settle(calls, { known: this.#stopsBefore })
    return calls.length > 0
  }

  /**
   * Sends answers in one request; returns what the service names as accepted. Throws a `CliError`: of kind `unknown`
   * where the fate of an answer stays unknown.
   */
  async post(answers: readonly Answer[]): Promise<SessionEvent[]> {
    const { audit, context, state, fate } = this.#session
    const named: SessionEvent[] = []
    for (let left = answers; left.length > 0; ) {
      const known = new Set(state.stops)
      for (const { call } of left) this.#begin(call)
      const outcome = await postOnce(this.#session, left, this.look)
      context.whenInterrupted(() => fate)
      named.push(...outcome.named)
      for (const answer of outcome.accepted) this.#accept(answer)
      for (const { event } of outcome.needless) state.add(event)
      if (outcome.lost.length > 0) {
        for (const { call } of outcome.lost)
          audit.add({ toolUse: call.id, name: call.name, event: 'unknown', reason: outcome.failure?.message })
        await this.#fates.settle(
          outcome.lost.map(({ call }) => call),
          { known, failure: outcome.failure, learnsFirst: true },
        )
      }
      left = outcome.refused
    }
    return named
  }

  #begin({ id, name }: Answer['call']): void {
    this.#done.add(id)
    this.#fates.forget(id)
    this.#session.audit.add({ toolUse: id, name, event: 'sent' })
  }

  #accept({ call, event }: Answer): void {
    const { audit, state } = this.#session
    audit.add({ toolUse: call.id, name: call.name, event: 'accepted' })
    state.add(event)
  }
}
