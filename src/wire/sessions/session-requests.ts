import * as z from '../zod.ts'
import { EventList } from './send-events.ts'

/** Whole minor units of a currency, as text: `"187"` and `"USD"` are $1.87 (public clients, 9). */
const Money = z.looseObject({
  amount: z.string().check(z.refine((text) => /^\d{1,18}$/.test(text), 'must be whole minor units, as text')),
  currency: z.string(),
})

const SessionBudget = z.looseObject({ type: z.literal('limit'), max_list_cost: Money })

/** The most events that a session is made with. */
const mostEvents = 50

/** The body that makes a session (public clients, 9). */
export const CreateSession = z.looseObject({
  budget: z.nullish(SessionBudget),
  initial_events: z.optional(
    EventList.check(
      z.refine((events) => events.length <= mostEvents, `must have at most ${mostEvents} events`),
    ),
  ),
})
export type CreateSession = z.infer<typeof CreateSession>
