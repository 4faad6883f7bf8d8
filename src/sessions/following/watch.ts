import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { SessionState } from '../session-state.ts'
import { Gap } from './gap.ts'
import { News } from './news.ts'
import { Pace } from './pace.ts'

/** What is to be done next in order to follow a session. Times are in milliseconds. */
export type Step =
  /** Show these events, which are new, or none. Meanwhile the session may be sent something. */
  | { do: 'show'; items: EventItem[] }
  /** Wait, then read the list. */
  | { do: 'list'; after: number }
  /** Wait for the next event of the stream, but no longer than that. */
  | { do: 'listen'; atMost: number }
  /** Open another stream, as the last one ended, or something went wrong. */
  | { do: 'connect'; hasEnded: boolean }
  /** The session has stopped. */
  | { do: 'end' }

/**
 * Decides how a session is followed. It is given whatever lists and streams bring, or that they bring nothing, and says
 * what is new and what to do next. It does nothing itself, and is told the time.
 */
export class Watch {
  readonly #news = new News()
  readonly #pace: Pace
  /** The news of the last list or event, until they are shown. */
  #fresh: EventItem[] | undefined
  /** What has to be done before the stream is listened to. */
  #needs: Step | undefined
  /** Whether what came last may be the end: news, a silence, or the end of the stream. */
  #mayEnd = false
  /** An event of the stream that is not added to the news yet. */
  #arrived: EventItem | undefined
  #gap = new Gap()

  /** With `stays` a session is followed until it is terminated or deleted. */
  constructor({ stays }: { stays: boolean }) {
    this.#pace = new Pace(this.#news, stays)
  }

  get state(): SessionState {
    return this.#news.state
  }

  /** Whether the service does not show that it has worked on all that was sent. */
  get isUndone(): boolean {
    return this.#news.isUndone
  }

  /** Adds what was there before anything was done. */
  addPast(item: EventItem): void {
    this.#news.addPast(item)
  }

  /** A stream was opened. */
  addConnection(): void {
    this.#news.addConnection()
    this.#pace.addConnection()
    this.#needs = { do: 'list', after: 0 }
    this.#gap = new Gap()
    this.#arrived = undefined
  }

  /** These events were sent when the first stream was open, which so brings all that follows them. */
  addSent(events: readonly SessionEvent[]): void {
    this.#news.addSent(events)
    this.#needs = undefined
    this.#gap.close()
    this.#fresh = []
  }

  /** The list was read to its end. */
  addList(items: readonly EventItem[]): void {
    this.#needs = undefined
    this.#gap.addList(items)
    this.#fresh = this.#news.addList(items)
  }

  /** The stream brought an event. */
  addStreamed(item: EventItem): void {
    this.#arrived = item
  }

  /** The stream brought nothing for as long as it was listened to. */
  addSilence(): void {
    this.#mayEnd = true
    this.#needs = { do: 'list', after: 0 }
  }

  /** The stream ended. */
  addEnd(): void {
    this.#mayEnd = true
    this.#needs = { do: 'connect', hasEnded: true }
  }

  /** What was to be done went wrong. */
  addFailure(): void {
    // The stream is still there.
    if (this.#gap.isLooking) this.#gap.addFailure()
    else this.#needs = { do: 'connect', hasEnded: false }
  }

  /** What to do now; whatever comes of it is added before the next step is asked for. */
  next(now: number): Step {
    for (;;) {
      const step = this.#nextStep(now)
      if (step) return step
      const item = this.#nextItem(now)
      const after = item && this.#nextLook(item.event)
      if (after !== undefined) return { do: 'list', after }
      if (item) this.#takeIn(item)
      else if (!this.#fresh) return { do: 'listen', atMost: this.#pace.patience(now) }
    }
  }

  /** What comes before any other event is added. */
  #nextStep(now: number): Step | undefined {
    const [items, mayEnd] = [this.#fresh, this.#mayEnd]
    this.#fresh = undefined
    if (items) return { do: 'show', items }
    this.#mayEnd = false
    return mayEnd && this.#pace.isOver(now) ? { do: 'end' } : this.#needs
  }

  /** The event whose turn it is; none where the search for what was sent has just ended. */
  #nextItem(now: number): EventItem | undefined {
    if (!this.#arrived && this.#pace.isOverdue(now)) this.#fresh = this.#news.giveUp()
    else this.#arrived ??= this.#news.nextEarly()
    return this.#arrived
  }

  /** How long to wait until a look at the list that has to come before this event. Milliseconds. */
  #nextLook(event: SessionEvent): number | undefined {
    return this.#news.isLost || !this.#isNews(event) ? undefined : this.#gap.nextLook(event)
  }

  #takeIn(item: EventItem): void {
    this.#mayEnd = this.#isNews(item.event)
    this.#gap.endLook()
    this.#arrived = undefined
    this.#fresh = this.#news.addStreamed(item)
  }

  /** Whether it was new when it came: a look at the list may have made it known since. */
  #isNews(event: SessionEvent): boolean {
    return this.#gap.isLooking || this.#news.isNew(event)
  }
}
