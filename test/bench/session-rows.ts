import { writeTemporaryFile } from './measure.ts'
import { type BenchRow, compare } from './rows.ts'
import { createSessionEvents } from './server.ts'

/** Creates the rows of long sessions. */
export function createSessionRows(parley: string): BenchRow[] {
  const events = writeTemporaryFile('session.ndjson', createSessionEvents().join('\n'))
  const allow = '{"rules":[{"tool":"bash","input":{"command":"ls *"},"decision":"allow"}]}'
  const rules = writeTemporaryFile('rules.json', allow)
  return [
    ['`events list --raw`', 'events list -s long'],
    ['`events follow --history --raw`', 'events follow -s long --history'],
    ['`policy check`', `policy check ${rules} ${events}`],
  ].map(([work, argv]) =>
    compare(
      [`${work} of 100,000 events`, `${parley} ${argv} --raw -q > ${events}.listed`],
      ['`jq -c` over the same bytes', `jq -c . ${events} > ${events}.printed`],
      { rounds: 3, budget: [2, 2], memory: 110, tools: ['jq'] },
    ),
  )
}
