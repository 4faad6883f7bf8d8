import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { RequestParts } from '../../http/drafter.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import type { SessionState } from '../session-state.ts'
import { Endurance } from './endurance.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import { type Step, Watch } from './watch.ts'

export interface FollowOptions {
  /** Is given what happened before, page by page. */
  showPast?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  /** Go on when the session stops, until it is terminated or deleted. */
  stays?: boolean
  /** A session in which nothing has happened is a usage error. */
  needsPast?: boolean
}

/** How long a list may take to show the first event of a session: the waits before each look. Milliseconds. */
const firstWaits = [250, 500, 1_000, 1_500, 1_750]

/** Reads what there is, before anything is sent, and opens a stream. Throws a `CliError`. */
export async function openFollower(
  context: Context,
  caller: Caller,
  parts: RequestParts,
  { showPast, stays = false, needsPast = false }: FollowOptions = {},
): Promise<Follower> {
  const watch = new Watch({ stays })
  const endurance = new Endurance(context, caller)
  for (const wait of [0, ...firstWaits]) {
    if (wait > 0) await context.timers.wait(Math.min(wait, Math.max(endurance.left, 0)))
    endurance.checkDeadline()
    for await (const items of listOldestFirst(caller, parts)) {
      for (const item of items) watch.addPast(item)
      await showPast?.(items)
    }
    if (!needsPast || !watch.state.isEmpty) break
  }
  if (needsPast && watch.state.isEmpty) throw usage('nothing has happened in this session yet')
  const stream = await openEventStream(caller, parts, context.timers)
  return new Follower({ context, caller, parts, watch }, stream)
}

interface Followed {
  context: Context
  caller: Caller
  parts: RequestParts
  watch: Watch
}

/** Brings the events of a session as they happen: does step by step what its watch says. */
export class Follower {
  readonly #followed: Followed
  readonly #endurance: Endurance
  #stream: EventStream

  constructor(followed: Followed, stream: EventStream) {
    this.#followed = followed
    this.#stream = stream
    this.#endurance = new Endurance(followed.context, followed.caller)
  }

  /** What the events that were brought so far say about the session. */
  get state(): SessionState {
    return this.#followed.watch.state
  }

  /** Whether the service never showed that it worked on all that was sent. */
  get isUndone(): boolean {
    return this.#followed.watch.isUndone
  }

  /**
   * What is new, part by part, until the session stops; of events just sent, what comes after them. A part may be
   * empty; the first comes before anything is decided. Between two parts more may be sent and be added to the state:
   * following goes on with what comes of it. Throws a `CliError`.
   */
  async *news(sent?: readonly SessionEvent[]): AsyncGenerator<readonly EventItem[]> {
    const { context, watch } = this.#followed
    this.#endurance.addAnswer()
    watch.addConnection()
    if (sent) watch.addSent(sent)
    for (;;) {
      const step = watch.next(context.timers.now())
      if (step.do === 'end') return
      if (step.do === 'show') {
        if (step.items.length > 0) this.#endurance.addProgress()
        yield step.items
        // It is not the service that made the time pass until now.
        this.#endurance.addAnswer()
        continue
      }
      try {
        await this.#carryOut(step)
      } catch (error) {
        this.#endurance.endure(error)
        watch.addFailure()
      }
    }
  }

  close(): void {
    this.#stream.close()
  }

  #carryOut(step: Step): Promise<void> | undefined {
    if (step.do === 'list') return this.#list(step.after)
    if (step.do === 'listen') return this.#listen(step.atMost)
    return step.do === 'connect' ? this.#connect(step.hasEnded) : undefined
  }

  async #list(after: number): Promise<void> {
    const { context, caller, parts, watch } = this.#followed
    if (after > 0) await context.timers.wait(after)
    this.#endurance.checkDeadline()
    const all: EventItem[] = []
    for await (const items of listOldestFirst(caller, parts)) for (const item of items) all.push(item)
    this.#endurance.addAnswer()
    watch.addList(all)
  }

  async #listen(atMost: number): Promise<void> {
    const { watch } = this.#followed
    const next = await this.#stream.next(Math.max(0, Math.min(atMost, this.#endurance.left)))
    if (next === 'silence') return watch.addSilence()
    this.#endurance.addAnswer()
    if (next === 'end') watch.addEnd()
    else watch.addStreamed(next)
  }

  async #connect(hasEnded: boolean): Promise<void> {
    const { context, caller, parts, watch } = this.#followed
    if (hasEnded) context.note('the stream of events broke off; connecting again')
    const { lastId } = this.#stream
    this.#stream.close()
    await this.#endurance.wait()
    this.#stream = await openEventStream(caller, parts, context.timers, lastId)
    watch.addConnection()
  }
}
