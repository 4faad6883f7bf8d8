import { isObject } from '../../wire/json/parse.ts'
import type { EmulatedResponse } from '../response.ts'
import type { KeptSession } from './session.ts'
import type { Sessions } from './sessions.ts'

/** Where sessions are kept between two processes. */
export interface SessionStore {
  /** What others have written since it was last read or written. */
  read(): KeptSession[]
  /** Holds others off while it changes: `change` gets what they have written, and returns all that is to be kept. */
  change(change: (news: KeptSession[]) => Promise<KeptSession[]>): Promise<void>
}

/** The handlers that speak of sessions. */
export type SessionHandlers = {
  [K in Exclude<keyof Sessions, 'load' | 'keep'>]: (
    ...args: Parameters<Sessions[K]>
  ) => EmulatedResponse | Promise<EmulatedResponse>
}

/** How often another process's events are looked for while a session is followed. Milliseconds. */
const interval = 200

/** The same sessions for all processes that have the same store. */
export function keepSessions(sessions: Sessions, store: SessionStore): SessionHandlers {
  const refresh = () => sessions.load(store.read())

  function reading<A extends unknown[]>(read: (...args: A) => EmulatedResponse) {
    return (...args: A) => {
      refresh()
      return read(...args)
    }
  }

  function changing<A extends unknown[]>(change: (...args: A) => EmulatedResponse) {
    return async (...args: A) => {
      let response: EmulatedResponse | undefined
      await store.change((news) => {
        sessions.load(news)
        response = change(...args)
        return sessions.keep()
      })
      return response as EmulatedResponse
    }
  }

  return {
    create: changing(sessions.create),
    update: changing(sessions.update),
    send: changing(sessions.send),
    describe: reading(sessions.describe),
    describeAll: reading(sessions.describeAll),
    list: reading(sessions.list),
    follow(id, query) {
      refresh()
      const response = sessions.follow(id, query)
      const timer = setInterval(refresh, interval)
      return {
        ...response,
        close() {
          clearInterval(timer)
          response.close?.()
        },
      }
    },
  }
}

/** Reads what `Sessions.keep` returned and JSON carried. Throws if it cannot be that. */
export function readKeptSessions(value: unknown): KeptSession[] {
  if (!Array.isArray(value) || !value.every(isKept)) throw new Error('it holds something else')
  return value
}

function isKept(value: unknown): value is KeptSession {
  if (!isObject(value)) return false
  const { id, used, created, updated, fields, events, agent, meter } = value
  const texts = [id, created, updated]
  if (!texts.every((text) => typeof text === 'string') || typeof used !== 'number') return false
  if (!isObject(fields) || !isObject(agent) || !isObject(meter) || !isObject(meter.request)) return false
  const { input, output, cacheRead, active, request, budget } = meter
  const counts = [input, output, cacheRead, active, request.context, request.input, request.output]
  const { rounds, held, waiting, threads } = agent
  return (
    counts.every((count) => typeof count === 'number') &&
    (budget === undefined || isBudget(budget)) &&
    [rounds, held, waiting, threads, events].every(Array.isArray) &&
    (rounds as unknown[]).every(Array.isArray) &&
    (rounds as unknown[][]).flat().every((step) => isObject(step) && isObject(step.fields)) &&
    [...(held as unknown[]), ...(events as unknown[])].every(
      (event) => isObject(event) && typeof event.id === 'string' && typeof event.type === 'string',
    )
  )
}

const isBudget = (value: unknown): boolean =>
  isObject(value) && isObject(value.max_list_cost) && /^\d{1,18}$/.test(String(value.max_list_cost.amount))
