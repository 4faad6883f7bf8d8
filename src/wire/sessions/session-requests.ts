import * as z from '../zod.ts'
import { EventsToSend } from './send-events.ts'

/**
 * An amount in minor units of a currency, as text: `"187"` and `"USD"` mean $1.87 (src/wire/README.md: public
 * clients, 9).
 */
const Money = z.looseObject({
  amount: z.string().check(z.refine((text) => /^\d{1,18}$/.test(text), 'must be digits, in minor units')),
  currency: z.string(),
})

const SessionBudget = z.looseObject({ type: z.literal('limit'), max_list_cost: Money })

export const UpdateSessionBody = z.looseObject({ budget: z.nullish(SessionBudget) })

const maxInitialEvents = 50

export const CreateSessionBody = z.looseObject({
  budget: z.nullish(SessionBudget),
  initial_events: z.optional(
    EventsToSend.check(
      z.refine((events) => events.length <= maxInitialEvents, `must have at most ${maxInitialEvents} events`),
    ),
  ),
})
export type CreateSessionBody = z.infer<typeof CreateSessionBody>
