import { writeFileSync } from 'node:fs'
import { getTemporaryPath, parleyPath } from './measure.ts'
import { type BenchRow, createServerEnvironment } from './rows.ts'
import { createSessionEvents } from './server.ts'

/** Creates the rows of long sessions. */
export function createSessionRows(node: string, url: string): BenchRow[] {
  const events = getTemporaryPath('session.ndjson')
  const rules = getTemporaryPath('rules.json')
  writeFileSync(events, createSessionEvents().join('\n'))
  writeFileSync(rules, '{"rules":[{"tool":"bash","input":{"command":"ls *"},"decision":"allow"}]}')
  const jobs = {
    '`events list --raw` of 100,000 events': 'events list -s long --raw',
    '`events follow --history --raw` of 100,000 events': 'events follow -s long --history --raw',
    '`policy check` of 100,000 events': `policy check ${rules} ${events} --raw`,
  }
  return Object.entries(jobs).map(([work, argv]) => ({
    work,
    against: '`jq -c` over the same bytes',
    job: {
      command: `'${node}' '${parleyPath}' ${argv} -q > ${getTemporaryPath('listed')}`,
      env: createServerEnvironment(url),
    },
    baseline: { command: `jq -c . ${events} > ${getTemporaryPath('listed2')}` },
    rounds: 3,
    budget: [2, 2],
    memory: 110,
    tools: ['jq'],
  }))
}
