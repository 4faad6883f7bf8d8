import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { spellBody } from '../../wire/json/body-text.ts'
import { appending, editJson } from '../../wire/json/edit.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import {
  type AddedEvent,
  asksForStdin,
  type EventFlag,
  readEventFlags,
  readFileBlocks,
} from './event-flags.ts'
import { createReview, type GivenEvents, parseGiven, readGiven, type Visit } from './given-events.ts'

export interface EventsOptions {
  input?: string
  eventFlags?: EventFlag[]
  /** `-f`: files for the message. */
  file?: string[]
  /** False with `--no-validate`. */
  validate?: boolean
}

/**
 * Makes the request's body: the events of `-i` or stdin, then those of flags and words, each spelled as it was given.
 * Returns nothing if no event is given at all. Throws a usage error that names every problem.
 */
export async function readEvents(
  context: Context,
  options: EventsOptions,
  words: string[],
): Promise<Uint8Array | undefined> {
  const { input } = context
  const flags = options.eventFlags ?? []
  const files = await readFileBlocks(input, options.file)
  const review = options.validate === false ? undefined : createReview()
  const given = await readInput(context, options, words, review?.add)
  if (!given && flags.length + words.length + files.length === 0) return undefined
  const piped = await readPiped(context, options, words)
  const added = await readEventFlags(input, flags, { files, words, piped })
  if (review) {
    for (const event of valuesOf(added)) {
      if (Array.isArray(event))
        throw usage('--event takes one event: repeat it, or give a list by -i FILE or through a pipe')
      review.add(event)
    }
    review.end(given)
  }
  return Buffer.from(spellBody(() => join(given, added)))
}

/** The same; without anything else the events are stdin's. Throws a usage error if there are none. */
export async function requireEvents(
  context: Context,
  options: EventsOptions,
  words: string[],
): Promise<Uint8Array> {
  const { input: path, eventFlags = [], file = [] } = options
  const isBare = path === undefined && eventFlags.length + words.length + file.length === 0
  const { stdinKind, readsStdin } = context.input
  const isPiped = readsStdin && stdinKind !== 'terminal'
  const body = await readEvents(context, isBare && isPiped ? { ...options, input: '-' } : options, words)
  if (!body) throw usage('no events: give words, flags, or JSON through a pipe or with -i FILE')
  return body
}

/** The events of `-i`, or of stdin: not if its text belongs to words, if a flag reads it, or if no flag needs more. */
async function readInput(
  { input }: Context,
  { input: path, eventFlags = [], file = [] }: EventsOptions,
  words: string[],
  visit: Visit | undefined,
): Promise<GivenEvents | undefined> {
  const reading = { visit, hint: "to send text, give it as words, or '-' for stdin" }
  if (path !== undefined) return readGiven(input, path, reading)
  const isInterrupt = ({ name }: EventFlag) => name.startsWith('interrupt')
  const isLeft = eventFlags.length > 0 && file.length === 0 && eventFlags.every(isInterrupt)
  if (isLeft && words.length === 0) input.leaveStdin('an interrupt')
  if (words.length > 0 || isLeft || eventFlags.some(asksForStdin)) return undefined
  const text = (await input.piped('the input of events')) ?? ''
  return text.trim() === '' ? undefined : parseGiven(text, 'stdin', reading)
}

/** The text of a stdin that belongs to the words. */
async function readPiped(
  { input, note }: Context,
  { input: path, eventFlags = [] }: EventsOptions,
  words: string[],
): Promise<string> {
  if (path !== undefined && words.length === 0 && !eventFlags.some(asksForStdin)) input.leaveStdin('-i FILE')
  const isTaken = path === '-' || words.includes('-') || eventFlags.some(asksForStdin)
  if (words.length === 0 || isTaken) return ''
  const text = await input.pipedBeside('the message')
  if (looksLikeEvents(text)) note('stdin looks like events; it is sent as text, after the words')
  return text
}

function looksLikeEvents(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  const value = tryParseJson(text) ?? tryParseJson(text.trimStart().split('\n', 1)[0] ?? '')
  const [first] = Array.isArray(value) ? value : [value]
  return isObject(first) && (typeof first.type === 'string' || Array.isArray(first.events))
}

/** The body with all of the events. */
function join(given: GivenEvents | undefined, added: AddedEvent[]): string {
  const texts = added.map((event) => ('json' in event ? event.json : JSON.stringify(event.value)))
  if (given && !given.lines) {
    const appended = texts.map((text) => appending(['events'], text))
    return editJson(given.body, appended)
  }
  const lines = given?.lines?.join(',\n') ?? ''
  return `{"events":[${lines}${lines && texts.length > 0 ? ',' : ''}${texts.join(',')}]}`
}

function* valuesOf(added: AddedEvent[]): Generator<unknown> {
  for (const event of added) yield 'json' in event ? JSON.parse(event.json) : event.value
}
