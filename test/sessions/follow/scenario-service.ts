import type { Timers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createSessionService, type PostRule } from '../../harness/session-service.ts'
import { type Event, type GeneratedStream, getSentId, type Scenario } from './scenarios.ts'

export type ScenarioService = ReturnType<typeof createScenarioService>

const maxLists = 200

/** Without times, parley does not assume that a sent task is queued behind earlier tasks. */
const withoutTime = (event: Event): Event => ({ ...event, processed_at: undefined })

/** Creates a session service that lags, omits, repeats and cuts as much as the specification allows. */
export function createScenarioService(scenario: Scenario, timers: Timers) {
  const { history, late, isSent, lag, list, streams } = scenario
  const turn = scenario.turn.map(({ event, after }) => ({ event: withoutTime(event), after }))
  /** For each id, the position of its event in the order of first delivery. */
  const delivered = new Map<unknown, number>()
  const firstListIds = new Set<unknown>()
  /** Number of the session's events at the time of each list. */
  const eventCounts: number[] = []
  let listedCount = 0

  function deliver(id: unknown): void {
    if (!delivered.has(id)) delivered.set(id, delivered.size)
  }

  /** Returns the number of events in a new list, which is never less than in an earlier list. */
  function countListedEvents(): number {
    eventCounts.push(service.events.length)
    if (eventCounts.length > maxLists) throw new Error('the service is queried endlessly')
    const old = history.length - late
    return eventCounts.length === 1 ? old : Math.max(listedCount, eventCounts.at(-1 - lag) ?? old)
  }

  const service: ReturnType<typeof createSessionService> = createSessionService({
    timers,
    history: history.map(withoutTime),
    posts: ([posted]) => ({
      before: scenario.runsFirst ? [withoutTime({ id: 'sent_running', type: 'session.status_running' })] : [],
      posted: { processed: 'never' },
      next: turn,
      ...createReceipt(scenario, posted?.type),
    }),
    list: { form: list.form, pageSize: list.size, ignores: list.obeys ? [] : ['order', 'types', 'limit'] },
    lists: [
      {
        act() {
          listedCount = countListedEvents()
        },
        hides({ id }) {
          if (service.events.findIndex((event) => event.id === id) >= listedCount) return true
          deliver(id)
          if (eventCounts.length === 1) firstListIds.add(id)
          return false
        },
      },
    ],
    streams: streams.map((stream, index) => {
      const isLast = index === streams.length - 1
      let frames = 0
      return {
        ...(isLast ? {} : { nth: index + 1, cutAfter: stream.cutAfter, cut: stream.cut }),
        // With `events`, a stream is cut at once, not at the next event.
        ...(isLast || stream.cut === 'half' ? {} : { events: [] }),
        get replay() {
          // The first stream delivers half of the events that the first list omitted.
          if (index > 0 || stream.replay !== 0 || service.posts.length > 0) return stream.replay
          return service.events.length - history.length + (late >> 1)
        },
        omits: ({ type }) => !scenario.echoes && type.startsWith('user.'),
        repeats: () => stream.twice.includes(frames - 1),
        frame(event) {
          if (isLast || frames < stream.cutAfter) deliver(event.id)
          frames++
          return createFrames(event, stream).join('')
        },
      }
    }),
    // The service does not support GET /v1/sessions/{id}, so the response has neither an id nor a status.
    session: () => ({ data: [] }),
  })

  async function playTurn(): Promise<void> {
    for (const { event, after } of turn) {
      await timers.wait(after)
      service.add(event)
    }
  }
  if (!isSent) void playTurn()

  const exchange: Exchange = async (request, onSent) => {
    const response = await service.exchange(request, onSent)
    if (!scenario.sendsComments || !request.url.includes('/events/stream')) return response
    return { ...response, body: addComments(response.body, timers) }
  }

  return { exchange, events: service.events, posts: service.posts, delivered, firstListIds }
}

function createReceipt(scenario: Scenario, type: unknown): PostRule {
  const { receipt } = scenario
  if (receipt === 'whole') return {}
  if (receipt !== 'ids') return { response: receipt }
  const body = JSON.stringify({ data: [{ id: getSentId(scenario), type }] })
  return { isAccepted: true, fault: { status: 200, body } }
}

/** Adds a comment after every 15 s of silence. */
async function* addComments(body: AsyncIterable<Uint8Array>, timers: Timers): AsyncGenerator<Uint8Array> {
  const bytes = body[Symbol.asyncIterator]()
  let next = bytes.next()
  for (;;) {
    const result = await Promise.race([next, timers.wait(15_000)])
    if (result?.done) return
    yield result ? result.value : Buffer.from(':keepalive\n\n')
    if (result) next = bytes.next()
  }
}

function createFrames(
  event: { type: string; id?: unknown },
  { name, hasComments, hasPieces }: GeneratedStream,
): string[] {
  const frame = (value: { type: string }) => {
    const line = name === 'none' ? '' : `event: ${name === 'message' ? name : value.type}\n`
    return `${hasComments ? ':keepalive\n\n' : ''}${line}data: ${JSON.stringify(value)}\n\n`
  }
  if (!hasPieces || event.type !== 'agent.message') return [frame(event)]
  const { type } = event
  const id = String(event.id)
  const piece = (text: string) => ({
    type: 'event_delta',
    event_id: id,
    delta: { type: 'content_delta', index: 0, content: { type: 'text', text } },
  })
  const pieces = [{ type: 'event_start', event: { id, type } }, piece(id.slice(0, 2)), piece(id.slice(2))]
  return [...pieces, event].map(frame)
}
