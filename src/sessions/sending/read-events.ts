import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { type Neighbour, refuseStrayFiles } from '../../io/stray-files.ts'
import { appending } from '../../wire/json/assignment.ts'
import { editJson } from '../../wire/json/edit.ts'
import { encodeJson, type JsonPart, partsOf } from '../../wire/json/encoder.ts'
import { childrenOf, findChild, skipBlanks } from '../../wire/json/scanner.ts'
import { checkEvents } from './check-events.ts'
import { type AddedEvent, asksForStdin, type EventFlag, readEventFlags } from './event-flags.ts'
import { type EventsText, readEventsText } from './events-text.ts'

export interface EventsOptions {
  input?: string
  eventFlags?: EventFlag[]
  neighbours?: Neighbour[]
  /** False with `--no-validate`. */
  validate?: boolean
}

/**
 * Makes the request's body: the events of `-i` or stdin, then those of flags and words, each spelled as it was given.
 * Throws a usage error that names every problem.
 */
export async function readEvents(
  context: Context,
  options: EventsOptions,
  words: string[],
): Promise<Uint8Array> {
  const isGiven = options.input !== undefined || !hasOthers(options, words)
  return compose(context, options, words, async () =>
    isGiven ? readGiven(context, options.input) : undefined,
  )
}

/** The same, but where nothing is given at all, and stdin is a terminal or empty, there are no events. */
export async function readEventsIfAny(
  context: Context,
  options: EventsOptions,
  words: string[],
): Promise<Uint8Array | undefined> {
  if (options.input !== undefined || hasOthers(options, words)) return readEvents(context, options, words)
  const text = await context.input.piped('the input of events')
  if (text.trim() === '') return undefined
  return compose(context, options, words, () => readEventsText(text, 'stdin'))
}

const hasOthers = ({ eventFlags = [] }: EventsOptions, words: string[]) =>
  eventFlags.length + words.length > 0

async function compose(
  context: Context,
  options: EventsOptions,
  words: string[],
  read: () => Promise<EventsText | undefined>,
): Promise<Uint8Array> {
  const { input } = context
  await refuseStrayFiles(input, options.neighbours)
  const flags = options.eventFlags ?? []
  const given = await read()
  const isTaken = options.input === '-' || words.includes('-') || flags.some(asksForStdin)
  const added = await readEventFlags(input, flags, { words, isPiped: !isTaken })
  const { events, json } = join(given, added)
  if (options.validate !== false) checkEvents(context, events, given)
  const body = encodeJson(json)
  if (!body) throw tooLong()
  return body
}

const tooLong = () => usage('the events are longer than 512 MiB, the most that can be sent')

/** What each of the events says, and the body with all of them, in pieces. */
function join(
  given: EventsText | undefined,
  added: AddedEvent[],
): { events: Iterable<unknown>; json: Iterable<JsonPart> } {
  if (!given || given.lines) {
    const lines = given?.lines ?? []
    return { events: valuesOf(lines, added), json: piecesOf(lines, added) }
  }
  const toText = (event: AddedEvent) => ('json' in event ? event.json : JSON.stringify(event.value))
  try {
    const json = editJson(
      given.body,
      added.map((event) => appending(['events'], toText(event))),
    )
    return { events: valuesOf(eventsIn(json, given.name), []), json: [{ json }] }
  } catch (error) {
    throw error instanceof RangeError ? tooLong() : error
  }
}

function* valuesOf(texts: Iterable<string>, added: AddedEvent[]): Generator<unknown> {
  for (const text of texts) yield JSON.parse(text)
  for (const event of added) yield 'json' in event ? JSON.parse(event.json) : event.value
}

/** How many events are joined at a time. */
const group = 1000

function* piecesOf(lines: string[], added: AddedEvent[]): Generator<JsonPart> {
  yield { json: '{"events":[' }
  for (let start = 0; start < lines.length; start += group) {
    if (start > 0) yield { json: ',\n' }
    yield { json: lines.slice(start, start + group).join(',\n') }
  }
  for (const [index, event] of added.entries()) {
    if (lines.length + index > 0) yield { json: ',' }
    if ('json' in event) yield event
    else yield* partsOf(event.value)
  }
  yield { json: ']}' }
}

function* eventsIn(body: string, name: string): Generator<string> {
  const list = findChild(body, skipBlanks(body, 0), 'events')
  if (!list || body[list.start] !== '[') throw usage(`${name}: events: must be a list`)
  for (const { start, end } of childrenOf(body, list.start)) yield body.slice(start, end)
}

/** Reads the events of a file or stdin. Throws a usage error where stdin is a terminal. */
export async function readGiven({ input }: Context, path: string | undefined): Promise<EventsText> {
  if (path === undefined && input.stdinKind === 'terminal') {
    throw usage('no events: give words, flags, or JSON through a pipe or with -i FILE')
  }
  const name = path === undefined || path === '-' ? 'stdin' : path
  const text = await input.text(path ?? '-', 'the input of events')
  if (text.trim() === '') throw usage(`no events: ${name} is empty`)
  return readEventsText(text, name)
}
