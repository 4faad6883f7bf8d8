import { expect } from 'vitest'
import type { Scenario } from './session-scripts.ts'
import { type Event, type SessionService, sentId } from './session-service.ts'

/** Returns the ids of the printed events, line by line. Exact JSON may include deltas of events. */
export function readIds(out: string, isRaw: boolean, ledger: readonly Event[]): string[] {
  const lines = out.split('\n').slice(0, -1)
  if (!isRaw) return lines.map((line) => line.split('\t')[0] ?? '')
  const texts = new Set(ledger.map((event) => JSON.stringify(event)))
  return lines
    .filter((line) => !/^\{"type":"event_(start|delta)"/.test(line))
    .map((line) => {
      expect(texts, 'a line that is not an exact event').toContain(line)
      return JSON.parse(line).id
    })
}

interface Expected {
  /** Each of these ids is printed once. */
  wanted: readonly string[]
  /** Each of these ids may be printed once. */
  open?: readonly string[]
}

/**
 * Returns what is wrong with the printed ids. If the list does not lag, the order is the ledger's. If it
 * lags, an event may follow a later event that was delivered first.
 */
export function findMistakes(
  printed: string[],
  { wanted, open = [] }: Expected,
  service: SessionService,
  lag: number,
): string[] {
  const order = new Map(service.ledger.map(({ id }, i) => [id, i]))
  const isEarly = (a: string, b: string) =>
    lag > 0 && (service.delivered.get(a) ?? Infinity) < (service.delivered.get(b) ?? Infinity)
  return [
    ...wanted.filter((id) => !printed.includes(id)).map((id) => `lost: ${id}`),
    ...printed.filter((id, i) => printed.indexOf(id) !== i).map((id) => `twice: ${id}`),
    ...printed.filter((id) => !wanted.includes(id) && !open.includes(id)).map((id) => `not expected: ${id}`),
    ...printed.flatMap((id, i) =>
      printed
        .slice(i + 1)
        .filter((later) => (order.get(later) ?? 0) < (order.get(id) ?? 0) && !isEarly(id, later))
        .map((later) => `${id} before ${later}`),
    ),
  ]
}

const getTurnIds = ({ turn }: Scenario) => turn.map(({ event }) => event.id)

/**
 * Returns the expected output of `send --follow`. The sent event is not printed, but without ids in the
 * receipt it may be.
 */
export const afterSent = (scenario: Scenario): Expected => ({
  wanted: getTurnIds(scenario),
  open: ['sent_running', ...(/^(whole|ids|other ids)$/.test(scenario.receipt) ? [] : [sentId])],
})

/** Returns the expected output of `follow`. Older events that the first list omitted may be printed. */
export function fromNow(scenario: Scenario, { shownFirst }: SessionService, hasHistory: boolean): Expected {
  const history = scenario.history.map(({ id }) => id)
  if (hasHistory) return { wanted: [...history, ...getTurnIds(scenario)] }
  return { wanted: getTurnIds(scenario), open: history.filter((id) => !shownFirst.has(id)) }
}

/** Returns the answer: the agent's last message in the main thread after the last message of a user. */
export function findAnswer({ history, isSent, turn }: Scenario): string | undefined {
  const since = isSent ? [] : history.slice(history.findLastIndex(({ type }) => type === 'user.message'))
  const said = [...since, ...turn.map(({ event }) => event)].filter(({ type }) => type === 'agent.message')
  return said.findLast((event) => event.session_thread_id === undefined)?.id
}
