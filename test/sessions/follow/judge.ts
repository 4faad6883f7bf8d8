import { expect } from 'vitest'
import type { Scenario } from './session-scripts.ts'
import { type Event, type SessionService, sentId } from './session-service.ts'

/** The ids of the events that output is about, line by line; `pieces` of events may be among exact JSON. */
export function idsOf(out: string, isRaw: boolean, ledger: readonly Event[]): string[] {
  const lines = out.split('\n').slice(0, -1)
  if (!isRaw) return lines.map((line) => line.split('\t')[0] ?? '')
  const texts = new Set(ledger.map((event) => JSON.stringify(event)))
  return lines
    .filter((line) => !/^\{"type":"event_(start|delta)"/.test(line))
    .map((line) => {
      expect(texts, 'a line that is no exact event').toContain(line)
      return JSON.parse(line).id
    })
}

interface Expected {
  /** Each has to be there once. */
  wanted: readonly string[]
  /** Each may be there once. */
  open?: readonly string[]
}

/**
 * Says what is wrong with the ids that were printed. Where the list does not lag the order is the ledger's; where
 * it does, an event may come after a later one that was handed out first.
 */
export function judge(
  printed: string[],
  { wanted, open = [] }: Expected,
  service: SessionService,
  lag: number,
): string[] {
  const order = new Map(service.ledger.map(({ id }, i) => [id, i]))
  const isEarly = (a: string, b: string) =>
    lag > 0 && (service.told.get(a) ?? Infinity) < (service.told.get(b) ?? Infinity)
  return [
    ...wanted.filter((id) => !printed.includes(id)).map((id) => `lost: ${id}`),
    ...printed.filter((id, i) => printed.indexOf(id) !== i).map((id) => `twice: ${id}`),
    ...printed.filter((id) => !wanted.includes(id) && !open.includes(id)).map((id) => `not asked for: ${id}`),
    ...printed.flatMap((id, i) =>
      printed
        .slice(i + 1)
        .filter((later) => (order.get(later) ?? 0) < (order.get(id) ?? 0) && !isEarly(id, later))
        .map((later) => `${id} before ${later}`),
    ),
  ]
}

const turnOf = ({ turn }: Scenario) => turn.map(({ event }) => event.id)

/** What `send --follow` has to print. The sent event itself is no news, but without a receipt may be taken for it. */
export const afterSent = (scenario: Scenario): Expected => ({
  wanted: turnOf(scenario),
  open: ['sent_running', ...(/^(whole|ids|other ids)$/.test(scenario.receipt) ? [] : [sentId])],
})

/** What `follow` has to print: what the first list did not show and had happened may be news or not. */
export function fromNow(scenario: Scenario, { shownFirst }: SessionService, hasHistory: boolean): Expected {
  const history = scenario.history.map(({ id }) => id)
  if (hasHistory) return { wanted: [...history, ...turnOf(scenario)] }
  return { wanted: turnOf(scenario), open: history.filter((id) => !shownFirst.has(id)) }
}

/** What the agent says last in the main thread after the last message of a user: its answer. */
export function answerOf({ history, isSent, turn }: Scenario): string | undefined {
  const since = isSent ? [] : history.slice(history.findLastIndex(({ type }) => type === 'user.message'))
  const said = [...since, ...turn.map(({ event }) => event)].filter(({ type }) => type === 'agent.message')
  return said.findLast((event) => event.session_thread_id === undefined)?.id
}
