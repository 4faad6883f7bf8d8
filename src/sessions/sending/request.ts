import type { Context } from '../../context.ts'
import { usageError } from '../../errors.ts'
import { createTextWithinLimit } from '../../wire/json/text-limit.ts'
import {
  createTextBlock,
  flagReadsStdin,
  getGivenEventFlags,
  messageFileKinds,
  readEventFlags,
  readFileBlocks,
} from './event-flags.ts'
import {
  createInputEventsCheck,
  joinEventsInBody,
  parseInputEvents,
  readInputEvents,
} from './input-events.ts'

interface EventInputOptions {
  input?: string
  file?: string[]
  validate?: boolean
}

/**
 * Builds the request's body from the source texts of the events. The events of `-i` or stdin come before the
 * events of flags and positional arguments. Returns `undefined` if there is no event. Throws a usage error
 * that lists every problem.
 */
export async function createEventsBody(
  context: Context,
  options: EventInputOptions,
  words: string[],
): Promise<Uint8Array | undefined> {
  const { input } = context
  const flags = getGivenEventFlags(context)
  const content = await readFileBlocks(input, options.file)
  const review = options.validate === false ? undefined : createInputEventsCheck()
  const { given, piped } = await readFileOrPipedEvents(context, options, words, review?.add)
  if (!given && flags.length + words.length + content.length === 0) return undefined
  if (words.length > 0) {
    const text = await input.joinWords(words, 'the message')
    if (text.trim() === '') throw usageError('the message is empty')
    content.push(createTextBlock(text))
  }
  if (piped !== '') content.push(createTextBlock(piped))
  const added = await readEventFlags(input, flags, content)
  if (review) {
    for (const text of added) {
      const value: unknown = JSON.parse(text)
      if (Array.isArray(value))
        throw usageError('--event takes one event: repeat the flag, or give a list by -i FILE or a pipe')
      review.add(value)
    }
    for (const warning of review.end(given)) context.messages.warn(warning)
  }
  return Buffer.from(createTextWithinLimit(() => joinEventsInBody(given, added)))
}

/** Reads the events of `-i` or stdin. `piped` is text from stdin, which is added to the given message. */
async function readFileOrPipedEvents(
  context: Context,
  { input: path }: EventInputOptions,
  words: string[],
  onEvent: ((event: unknown) => void) | undefined,
) {
  const { input } = context
  const flags = getGivenEventFlags(context)
  const reading = { onEvent, hint: "to send text, give it as words, or '-' for stdin" }
  const given = path === undefined ? undefined : await readInputEvents(input, path, reading)
  if (path === '-' || words.includes('-') || flags.some(flagReadsStdin)) return { given, piped: '' }
  if (words.length > 0) {
    const piped = await input.readPipedText('the message', messageFileKinds)
    if (startsEvents.test(piped))
      context.messages.note("stdin looks like events, but is sent as text; to send events, use '-i -'")
    return { given, piped }
  }
  if (given) return { given, piped: '' }
  const text = await input.readPipedText('the input of events')
  return { given: text === '' ? undefined : await parseInputEvents(text, 'stdin', reading), piped: '' }
}

const startsEvents = /^\s*[[{][\s[{]*"(events"\s*:\s*\[|type"\s*:\s*"(user|system)\.)/
