import * as z from './zod.ts'

/** An event as the service tells of it: only what is printed or followed is read, unknown kinds pass. */
export const SessionEvent = z.looseObject({
  id: z.catch(z.optional(z.string()), undefined),
  type: z.string(),
  processed_at: z.catch(z.nullish(z.string()), undefined),
})
export type SessionEvent = z.infer<typeof SessionEvent>

/** The answer to sending events, and a page of a list (session events, 2.3; `spec/beyond.md`). */
export const EventsPage = z.looseObject({
  data: z.nullish(z.array(SessionEvent)),
  next_page: z.catch(z.nullish(z.string()), undefined),
})

const StopReason = z.looseObject({
  type: z.string(),
  event_ids: z.catch(z.optional(z.array(z.string())), undefined),
})

/** Why a session is idle; `unknown` where it does not say. */
export function readStopReason(event: SessionEvent): { type: string; eventIds: string[] } {
  const parsed = StopReason.safeParse(event.stop_reason)
  return parsed.success
    ? { type: parsed.data.type, eventIds: parsed.data.event_ids ?? [] }
    : { type: 'unknown', eventIds: [] }
}

const Blocks = z.array(z.looseObject({ type: z.string(), text: z.catch(z.optional(z.string()), undefined) }))

/** The text of an event's content blocks. */
export function readText(event: SessionEvent): string {
  const blocks = Blocks.safeParse(event.content)
  return blocks.success ? blocks.data.map((block) => block.text ?? '').join('') : ''
}
