import { CliError, type FailureKind } from '../../errors.ts'
import { describeSchemaIssues } from '../json/parse.ts'
import { readListPage, toOneLineJson } from '../page.ts'
import { createResponseError, createUnexpectedBodyFailure, isErrorEnvelope } from '../problem/problem.ts'
import { parseReceivedJson, readErrorEvent } from '../received-json.ts'
import type * as z from '../zod.ts'
import { SessionEvent } from './session-event.ts'

/** An event, with its JSON source text on one line. */
export interface EventItem {
  event: SessionEvent
  text: string
}

/**
 * Reads a page of events up to the first element that is not an event. Throws a `CliError` if the text is
 * not a list.
 */
export function readEventsPage(body: Uint8Array) {
  const { data, texts, hasNextField, next } = readListPage(body, 'the list of events')
  const items: EventItem[] = []
  for (const [index, value] of data.entries()) {
    const { data: event, error } = SessionEvent.safeParse(value)
    if (error) {
      const refuse = (): string | undefined => {
        throw createEventError(error, `the list of events: [${index}]`)
      }
      // The caller still gets the valid events of this page. `next` throws the failure when the caller
      // requests the next page.
      return { items, hasNextField: true, next: refuse }
    }
    items.push({ event, text: texts[index] ?? '' })
  }
  return { items, hasNextField, next }
}

/**
 * Reads an event of the stream. `name` is the value of the `event:` line, which is the only sign of some
 * errors. Throws a `CliError` if the stream sends an error. If a retry cannot fix the error, its type decides
 * between the kinds `credentials`, `refused` and `payment`. Any other error has the kind `response`.
 */
export function readEventItem(data: string, name = ''): EventItem {
  const value = name === 'error' ? readErrorEvent(data) : parseReceivedJson(data, 'an event of the stream')
  if (typeof value === 'string' || isErrorEnvelope(value)) throw streamFailure(value)
  const { data: event, error } = SessionEvent.safeParse(value)
  if (error) throw createEventError(error, 'an event of the stream')
  return { event, text: toOneLineJson(data) }
}

const createEventError = (error: z.core.$ZodError, what: string): CliError =>
  createResponseError(`${what}: ${describeSchemaIssues(error).join('; ')}`)

const permanent: readonly FailureKind[] = ['credentials', 'refused', 'payment']

/** Returns whether a 2xx response or a stream contained an error that a retry cannot fix. */
export const isPermanentServiceError = ({ kind, details }: CliError): boolean =>
  details.isPermanent === true && (details.status ?? 200) < 300 && permanent.includes(kind)

function streamFailure(value: unknown): CliError {
  const { kind, details } = createUnexpectedBodyFailure(value, '')
  const isPermanent = permanent.includes(kind)
  const message = 'the stream of events ended with an error'
  const more = { ...details, errorIn: 'stream', sent: 'yes', isPermanent } as const
  return new CliError(isPermanent ? kind : 'response', message, more)
}
