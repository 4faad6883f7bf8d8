import type { SessionState } from '../session-state.ts'
import { type Call, readCall } from './call.ts'
import type { RunningSession } from './running-session.ts'
import type { Sighting } from './unasked.ts'

/** The waits before each look at a list that may lag. Milliseconds. */
const waits = [0, 250, 500, 1_000, 2_000]

/** Reads tool uses: what a stream left out the list may show. */
export class Uses {
  readonly #session: Pick<RunningSession, 'context' | 'state'>
  readonly #look: () => Promise<SessionState | undefined>

  constructor(
    session: Pick<RunningSession, 'context' | 'state'>,
    look: () => Promise<SessionState | undefined>,
  ) {
    this.#session = session
    this.#look = look
  }

  /** Whether it ran without a reply, also of another client, which only the list may show. */
  async isUnasked({ verdict: { call }, isCertain }: Sighting): Promise<boolean> {
    const { context, state } = this.#session
    if (isCertain) return true
    for (const wait of waits) {
      await context.timers.wait(wait)
      const seen = await this.#look()
      if (seen?.hasReply(call.id) || state.hasReply(call.id)) return false
      // The list has got as far as the result.
      if (seen?.isAnswered(call.id)) return true
    }
    return true
  }

  /** The tool uses of these ids, in that order; one that nothing is known of is left out. */
  async read(ids: readonly string[]): Promise<Call[]> {
    const { context, state } = this.#session
    const calls = new Map<string, Call>()
    const add = (seen: SessionState) => {
      for (const id of ids) {
        const use = calls.has(id) ? undefined : seen.toolUse(id)
        const call = use && readCall(use)
        if (call) calls.set(id, call)
      }
    }
    add(state)
    for (const wait of waits) {
      if (ids.every((id) => calls.has(id))) break
      await context.timers.wait(wait)
      const seen = await this.#look()
      if (seen) add(seen)
    }
    return ids.flatMap((id) => calls.get(id) ?? [])
  }
}
