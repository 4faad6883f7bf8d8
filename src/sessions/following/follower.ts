import type { Context } from '../../context.ts'
import { asStop, CliError, usage } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { describeAgo, giveLifeSigns } from '../../io/life-signs.ts'
import { callAfter } from '../../timers.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPiece, isStop, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { listEvents, listOldestFirst } from '../listing/event-list.ts'
import {
  afterResponse,
  endure,
  freshPatience,
  isCutByDeadline,
  requireTime,
  timeLeft,
  waitPatiently,
} from '../patience.ts'
import { readSession } from '../read-session.ts'
import { isToolUse, type SessionState } from '../session-state.ts'
import { openEventStream } from './event-stream.ts'
import type { FollowedTurn } from './followed-turn.ts'
import { begin, type Effect, type FollowingInput, step } from './following.ts'
import { type ListedEvents, SeenEvents } from './seen-events.ts'

export interface FollowOptions {
  /** Is given what happened before, page by page. */
  showPast?: ((items: readonly EventItem[], state: SessionState) => Promise<void>) | undefined
  /** Go on when the session stops, until it is terminated or deleted. */
  stays?: boolean
  /** A session in which nothing has happened is a usage error. */
  needsPast?: boolean
  /** The ids of a task that an earlier run has sent: no other task begins the turn. */
  own?: ReadonlySet<string> | undefined
}

/** An older list, in milliseconds, may not be acted on. */
const freshness = 1_000

/**
 * How long a list may take to show the rest that the stream has brought: the waits before each look, 5 s in all. And how
 * long such a list may take to come. Milliseconds.
 */
const restWaits = [0, 250, 250, 500, 1_000, 1_500, 1_500]
const longestLook = 10_000

/** How long a list may take to show the first event of a session: the waits before each look. Milliseconds. */
const firstWaits = [250, 500, 1_000, 1_500, 1_750]

/**
 * Reads what there is, before anything is sent, and opens a stream. Throws a `CliError`: of kind `stopped` if the deadline
 * cut a request.
 */
export async function openFollower(
  context: Context,
  caller: Caller,
  parts: RequestParts,
  options: FollowOptions = {},
): Promise<Follower> {
  const progress: FollowProgress = { events: 0, toolUses: 0, last: undefined }
  const describe = () => describeProgress(progress, context.timers.now())
  const endLifeSigns = options.stays ? () => {} : giveLifeSigns(context, describe)
  try {
    return await readAndOpen(context, caller, parts, { ...options, progress, endLifeSigns })
  } catch (error) {
    endLifeSigns()
    throw asStop(error, isCutByDeadline)
  }
}

async function readAndOpen(
  context: Context,
  caller: Caller,
  parts: RequestParts,
  {
    showPast,
    stays = false,
    needsPast = false,
    own,
    progress,
    endLifeSigns,
  }: FollowOptions & { progress: FollowProgress; endLifeSigns(): void },
): Promise<Follower> {
  const ledger = new SeenEvents()
  if (own) ledger.turn.recognize(own)
  const patient = { context, caller, repeat: 'always' as const }
  let patience = freshPatience(context.timers.now())
  const addResponse = () => {
    patience = afterResponse(patience, context.timers.now())
  }
  for (const wait of [0, ...firstWaits]) {
    if (wait > 0) await context.timers.wait(Math.min(wait, Math.max(timeLeft(patient), 0)))
    requireTime(patient)
    for await (const items of listOldestFirst(caller, parts)) {
      ledger.addPast(items)
      await showPast?.(items, ledger.state)
    }
    if (!needsPast || !ledger.state.isEmpty) break
  }
  if (needsPast && ledger.state.isEmpty) throw usage('nothing has happened in this session yet')
  const open = (lastId?: string) => openEventStream(caller, parts, context.timers, lastId)
  let stream = await open()
  let isWoken = false
  /** When the list was last asked for, by both clocks: one of them may be set back, the other stands still in a sleep. */
  let listedAt = { now: -Infinity, date: -Infinity }
  /** What was taken in beside the events that are brought in turn. */
  let unshown: EventItem[] = []

  async function readList(once?: AbortSignal): Promise<ListedEvents> {
    const askedAt = { now: context.timers.now(), date: context.timers.date() }
    const list = ledger.beginList()
    for await (const page of listOldestFirst(caller, { ...parts, once })) list.add(page)
    addResponse()
    listedAt = askedAt
    return list
  }

  /** A quiet session is asked for little: its newest event, and not its history. */
  async function isNewestKnown(): Promise<boolean> {
    const newest: EventItem[] = []
    for await (const page of listEvents(caller, parts, { order: 'desc', limit: 1 })) newest.push(...page)
    addResponse()
    return newest.every((item) => item.event.id !== undefined && !ledger.isNew(item))
  }

  function takeStreamed(): void {
    for (const item of stream.takeAll()) {
      if (!isPiece(item.event) && ledger.isNew(item)) unshown.push(...ledger.addStreamed(item))
      else ledger.addAgain(item)
    }
  }

  function isListOld(): boolean {
    const { timers } = context
    return timers.now() - listedAt.now > freshness || timers.date() - listedAt.date > freshness
  }

  async function fresh(isForced = false): Promise<void> {
    requireTime(patient)
    // What lies in the socket is read meanwhile.
    await context.timers.wait(0)
    takeStreamed()
    if (!isForced && !isListOld()) return
    unshown.push(...ledger.addList(await readList()))
    takeStreamed()
  }

  /**
   * Takes in what the stream has left out before a rest: the list shows it. Looks again only if the list does not show
   * that rest yet.
   */
  async function lookAtRest(look: number): Promise<void> {
    const late = new AbortController()
    const wait = restWaits[look] ?? 0
    await context.timers.wait(Math.min(wait, Math.max(timeLeft(patient), 0)))
    const cancel = callAfter(context.timers, longestLook, () => late.abort())
    try {
      unshown.push(...ledger.addList(await readList(late.signal)))
      takeStreamed()
    } catch (error) {
      const isEnded = ledger.state.stop?.kind === 'ended'
      if (!(error instanceof CliError) || (error.details.status === 404 && !isEnded)) throw error
      if (isEnded) return ledger.trustStop()
      if (look < restWaits.length - 1 && timeLeft(patient) > 0) return
      context.warn(
        `the list could not be read at the end: ${error.message}; the stream may have left out events`,
      )
      ledger.trustStop()
    } finally {
      cancel()
    }
  }

  /** What comes of what is to be done. Throws a `CliError`. */
  async function carryOut(effect: Exclude<Effect, { do: 'show' | 'end' }>): Promise<FollowingInput> {
    if (effect.do === 'list') {
      if (effect.after > 0) await context.timers.wait(effect.after)
      requireTime(patient)
      if (effect.isQuiet && (await isNewestKnown())) return { is: 'list', list: ledger.beginList() }
      const session = effect.asks ? await readSession({ context, caller, parts }) : undefined
      const list = await readList()
      return { is: 'list', list, isIdle: session?.status === 'idle' }
    }
    if (effect.do === 'listen') {
      const atMost = Math.max(0, Math.min(effect.atMost, timeLeft(patient)))
      const next = await stream.next(atMost)
      if (next === 'silence') return { is: 'silence', of: atMost }
      addResponse()
      return next === 'end' ? { is: 'ended' } : { is: 'event', item: next }
    }
    requireTime(patient)
    if (effect.because === 'ended') context.note('the stream of events broke off; connecting again')
    const { lastId } = stream
    stream.close()
    patience = await waitPatiently(patient, patience)
    stream = await open(lastId)
    return { is: 'opened' }
  }

  async function* news(sent?: readonly SessionEvent[]): AsyncGenerator<readonly EventItem[]> {
    addResponse()
    let { state, effect } = begin(ledger, stays, sent)
    /** How often the list was looked at in this rest. */
    let looks = 0
    for (;;) {
      if (isWoken && effect.do !== 'show') {
        isWoken = false
        effect = { do: 'show', items: [], of: 'event' }
      }
      if (unshown.length > 0 && effect.do !== 'show' && effect.do !== 'connect') {
        effect = { do: 'show', items: unshown, of: 'event' }
        unshown = []
      }
      let input: FollowingInput
      if (effect.do === 'end') {
        if (ledger.isStopListed || looks === restWaits.length) return
        await lookAtRest(looks++)
        input = { is: 'shown', of: 'event' }
      } else if (effect.do === 'show') {
        if (effect.items.some(({ event }) => isStop(event))) looks = 0
        if (effect.items.length > 0) patience = freshPatience(context.timers.now())
        for (const { event } of effect.items) {
          progress.events++
          if (isToolUse(event)) progress.toolUses++
          progress.last = { type: event.type, at: context.timers.now() }
        }
        yield effect.items
        // It is not the service that made the time pass until now.
        addResponse()
        input = { is: 'shown', of: effect.of }
      } else {
        try {
          input = await carryOut(effect)
        } catch (error) {
          patience = endure(patient, patience, error)
          input = { is: 'failed' }
        }
      }
      ;({ state, effect } = step(state, input, context.timers.now()))
    }
  }

  return {
    state: ledger.state,
    turn: ledger.turn,
    progress,
    get isUndone() {
      return ledger.isUndone
    },
    news,
    wake() {
      isWoken = true
      stream.wake()
    },
    fresh,
    close() {
      endLifeSigns()
      stream.close()
    },
  }
}

function describeProgress({ events, toolUses, last }: FollowProgress, now: number): string {
  if (!last) return 'no event yet'
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  const when = describeAgo(last.at, now)
  return `${count(events, 'event')}, ${count(toolUses, 'tool use')}; the last was ${last.type}, ${when}`
}

/** What was brought of a session so far. */
interface FollowProgress {
  events: number
  toolUses: number
  /** When the last event was brought, by the forward clock. */
  last: { type: string; at: number } | undefined
}

/** Brings the events of a session as they happen. */
export interface Follower {
  /** What the events that were brought so far say about the session. */
  readonly state: SessionState
  /** The turn of what was sent last; if nothing was sent, the session's last one. */
  readonly turn: FollowedTurn
  readonly progress: Readonly<FollowProgress>
  /** Whether the service never showed that it worked on all that was sent. */
  readonly isUndone: boolean
  /**
   * What is new, part by part, until the session stops; of events just sent, what comes after them. A part may be
   * empty; the first comes before anything is decided. Between two parts more may be sent and be added to the state:
   * following goes on with what comes of it. Once the session has stopped, it may be sent more, and be followed again.
   * Throws a `CliError`.
   */
  news(sent?: readonly SessionEvent[]): AsyncGenerator<readonly EventItem[]>
  /**
   * Takes into the state all that the stream has brought by now and, if the last list is older than a second, first of
   * all what the list shows; with `isForced` in any case. `news` brings it later. May be called at any time. Throws a `CliError` if the list cannot be
   * read.
   */
  fresh(isForced?: boolean): Promise<void>
  /** Has `news` bring an empty part soon, for the state was changed from outside. */
  wake(): void
  close(): void
}
