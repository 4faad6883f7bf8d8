import { expect } from 'vitest'
import type { ScenarioService } from './scenario-service.ts'
import { getSentId, type Scenario } from './scenarios.ts'

/** Returns the ids of the printed events, line by line. Skips pieces of events, which `--raw` also prints. */
export function readIds(out: string, isRaw: boolean, events: readonly object[]): string[] {
  const lines = out.split('\n').slice(0, -1)
  if (!isRaw) return lines.map((line) => line.split('\t')[0] ?? '')
  // The service shows `processed_at: null` in the sent event, so a printed line may contain this field.
  const shown = events.flatMap((event) => [event, { ...event, processed_at: null }])
  const texts = new Set(shown.map((event) => JSON.stringify(event)))
  return lines
    .filter((line) => !/^\{"type":"event_(start|delta)"/.test(line))
    .map((line) => {
      expect(texts, 'a line that is not an exact event').toContain(line)
      return JSON.parse(line).id
    })
}

interface Expected {
  /** Ids of the events that parley must print once. */
  wanted: readonly string[]
  /** Ids of the events that parley may print once. */
  optional?: readonly string[]
}

/**
 * Describes the lost, repeated, unexpected and wrongly ordered ids. If the list lags, parley may print an
 * event after a later event that it received first.
 */
export function findMistakes(
  printed: string[],
  { wanted, optional = [] }: Expected,
  service: ScenarioService,
  lag: number,
): string[] {
  const order = new Map<unknown, number>(service.events.map(({ id }, i) => [id, i]))
  const isEarly = (a: string, b: string) =>
    lag > 0 && (service.delivered.get(a) ?? Infinity) < (service.delivered.get(b) ?? Infinity)
  return [
    ...wanted.filter((id) => !printed.includes(id)).map((id) => `lost: ${id}`),
    ...printed.filter((id, i) => printed.indexOf(id) !== i).map((id) => `twice: ${id}`),
    ...printed.filter((id) => ![...wanted, ...optional].includes(id)).map((id) => `not expected: ${id}`),
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
 * Returns the expected output of `send --follow`. If the response has no ids, parley may also print the sent
 * event, because it cannot always recognize the event.
 */
export const expectSendOutput = (scenario: Scenario): Expected => ({
  wanted: getTurnIds(scenario),
  optional: ['sent_running', ...(/^(whole|.*ids)$/.test(scenario.receipt) ? [] : [getSentId(scenario)])],
})

/** Returns the expected output of `follow`. parley may print older events that the first list omitted. */
export function expectFollowOutput(
  scenario: Scenario,
  { firstListIds }: ScenarioService,
  hasHistory: boolean,
): Expected {
  const history = scenario.history.map(({ id }) => id)
  if (hasHistory) return { wanted: [...history, ...getTurnIds(scenario)] }
  return { wanted: getTurnIds(scenario), optional: history.filter((id) => !firstListIds.has(id)) }
}

/** Returns the id of the agent's last message in the main thread after the last message of a user. */
export function findAnswerId({ history, isSent, turn }: Scenario): string | undefined {
  const since = isSent ? [] : history.slice(history.findLastIndex(({ type }) => type === 'user.message'))
  const said = [...since, ...turn.map(({ event }) => event)].filter(({ type }) => type === 'agent.message')
  return said.findLast((event) => event.session_thread_id === undefined)?.id
}
