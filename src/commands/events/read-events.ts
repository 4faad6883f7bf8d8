import { editJson } from '../../client/json-edit.ts'
import { appending } from '../../client/set.ts'
import type { Context } from '../../context.ts'
import { usage, usageProblems } from '../../errors.ts'
import { warnAbout } from '../../wire/event-warnings.ts'
import { type EventsText, placeInList, readEventsText } from '../../wire/events-text.ts'
import { formatPath } from '../../wire/json.ts'
import { SendEvents } from '../../wire/send-events.ts'
import { type EventFlag, readEventFlags } from './event-flags.ts'

export interface EventsOptions {
  input?: string
  eventFlags?: EventFlag[]
  /** False with `--no-validate`. */
  validate?: boolean
}

/**
 * Gathers the request's body: the events of `-i` or stdin, then those of flags and words, each spelled as it was
 * given. Throws a usage error that names every problem.
 */
export async function readEvents(
  context: Context,
  options: EventsOptions,
  words: string[],
): Promise<Uint8Array> {
  const { input } = context
  const flags = options.eventFlags ?? []
  const hasOthers = flags.length + words.length > 0
  const given = options.input === undefined && hasOthers ? undefined : await readGiven(context, options.input)
  const added = await readEventFlags(input, flags, words)
  const additions = added.map((event) => appending(['events'], event))
  const body = given ? await editJson(given.body, additions) : `{"events":[${added.join(',')}]}`
  if (options.validate !== false) {
    checkEvents(context, given && added.length === 0 ? given.value : JSON.parse(body), given)
  }
  return Buffer.from(body)
}

/** Reads the events of a file, or of stdin, where a terminal would only be waited for. */
export async function readGiven({ input }: Context, path: string | undefined): Promise<EventsText> {
  if (path === undefined && input.stdinKind === 'terminal') {
    throw usage('no events: give words, flags, or JSON through a pipe or with -i FILE')
  }
  const name = path === undefined || path === '-' ? 'stdin' : path
  const text = await input.text(path ?? '-', 'the input of events')
  if (text.trim() === '') throw usage(`no events: ${name} is empty`)
  return readEventsText(text, name)
}

/** Checks a body by every rule of the specification; tells what is only unusual. Throws a usage error. */
export function checkEvents({ note }: Context, body: unknown, given: EventsText | undefined): void {
  const placeOf = given?.placeOf ?? placeInList
  const parsed = SendEvents.safeParse(body)
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => {
      const [list, index, ...rest] = path
      const isEvent = list === 'events' && typeof index === 'number'
      return `${isEvent ? placeOf(index, formatPath(rest)) : formatPath(path)}: ${message}`
    })
    throw usageProblems(given?.name ?? 'the events', problems)
  }
  for (const [index, event] of parsed.data.events.entries()) {
    for (const warning of warnAbout(event)) note(`${placeOf(index, '')}: ${warning}`)
  }
}
