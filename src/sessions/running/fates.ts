import { CliError } from '../../errors.ts'
import { Endurance } from '../following/endurance.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { SessionState } from '../session-state.ts'
import type { Call } from './call.ts'
import type { RunningSession } from './running-session.ts'

/** How long the service's list is asked what became of an answer. Milliseconds. */
const longestDoubt = 30_000

/** How long the list has to show that a session waits anew before that is believed: it may lag. Milliseconds. */
const longestLag = 5_000

/** The waits between two looks at the list; the last one stays. Milliseconds. */
const waits = [100, 250, 500, 1_000, 2_000]

type Named = Pick<Call, 'id' | 'name'>

interface Doubt {
  /** Stops of the session that may have come before the answer, so that they say nothing about it. */
  known: ReadonlySet<string>
  /** The first list may have more of these. */
  learnsFirst?: boolean
  /** Why it is not known. */
  failure?: CliError
}

/** Finds out from the service's own list what became of answers. */
export class Fates {
  readonly #session: RunningSession
  /** The service went on without these answers, and asks for them again. */
  readonly #repeatable = new Set<string>()
  /** Since when the list shows that the session waits for it anew. */
  readonly #askedSince = new Map<string, number>()

  constructor(session: RunningSession) {
    this.#session = session
  }

  mayBeRepeated(id: string): boolean {
    return this.#repeatable.has(id)
  }

  /** It is about to be repeated. */
  forget(id: string): void {
    this.#repeatable.delete(id)
    this.#askedSince.delete(id)
  }

  /** What the list says now; nothing where the service is away for a moment. Throws a `CliError`. */
  async look(): Promise<SessionState | undefined> {
    const { context, caller, parts } = this.#session
    const seen = new SessionState()
    try {
      for await (const items of listOldestFirst(caller, parts))
        for (const { event, text } of items) seen.add(event, text)
      return seen
    } catch (error) {
      new Endurance(context, caller).endure(error)
      return undefined
    }
  }

  /**
   * Asks until the list shows each of these as answered, or a newer stop of the session that still waits for it, so
   * that it may be answered again. Throws a `CliError` of kind `unknown` that names the others.
   */
  async settle(calls: readonly Named[], { known, learnsFirst = false, failure }: Doubt): Promise<void> {
    const { context, caller } = this.#session
    const { timers } = context
    const until = Math.min(timers.now() + longestDoubt, caller.deadline || Infinity)
    const old = new Set(known)
    let left = calls
    let isFirst = learnsFirst
    for (let look = 0; ; look++) {
      const seen = await this.#lookUntil(until, left, failure)
      if (seen) {
        if (isFirst) for (const stop of seen.stops) old.add(stop)
        isFirst = false
        left = left.filter((call) => !this.#isSettled(call, seen, old))
      }
      if (left.length === 0) return
      if (timers.now() >= until) throw inDoubt(left, failure)
      await timers.wait(Math.min(waits[look] ?? 2_000, until - timers.now()))
    }
  }

  /** After the deadline it is the open answer that counts, not the list. */
  async #lookUntil(until: number, left: readonly Named[], failure: CliError | undefined) {
    try {
      return await this.look()
    } catch (error) {
      throw this.#session.context.timers.now() >= until ? inDoubt(left, failure) : error
    }
  }

  #isSettled({ id, name }: Named, seen: SessionState, old: ReadonlySet<string>): boolean {
    const { audit, state, context } = this.#session
    if (seen.isAnswered(id)) {
      audit.add({ toolUse: id, name, event: 'accepted' })
      state.add({ type: 'user.tool_confirmation', tool_use_id: id })
      return true
    }
    const last = [...seen.stops].at(-1)
    if (last === undefined || old.has(last)) return false
    // Where it is not among what the session waits for, nobody waits for it any more.
    if (seen.pending.includes(id)) {
      const now = context.timers.now()
      const since = this.#askedSince.get(id) ?? now
      this.#askedSince.set(id, since)
      if (now - since < longestLag) return false
      this.#repeatable.add(id)
    }
    // Who follows the session has yet to see that.
    if (!state.stops.has(last)) state.expectWork()
    return true
  }
}

function inDoubt(calls: readonly Named[], failure: CliError | undefined): CliError {
  const ids = calls.map(({ id }) => id)
  const why = failure ? `: ${failure.message}` : ': an earlier run began to answer'
  return new CliError('unknown', `it is not known whether the answer to ${ids.join(', ')} arrived${why}`, {
    sent: 'unknown',
    pending: ids,
    consequence: "look with 'parley events list' before answering again with 'parley events confirm'",
  })
}
