import { writeFileSync } from 'node:fs'
import { parley, temporary } from './measure.ts'
import { credentials, type Row } from './rows.ts'
import { createSession } from './server.ts'

/** Creates the rows of long sessions. */
export function createSessionRows(node: string, url: string): Row[] {
  const events = temporary('session.ndjson')
  const rules = temporary('rules.json')
  writeFileSync(events, createSession().join('\n'))
  writeFileSync(rules, '{"rules":[{"tool":"bash","input":{"command":"ls *"},"decision":"allow"}]}')
  const jobs = {
    '`events list --raw` of 100,000 events': 'events list -s long --raw',
    '`events follow --history --raw` of 100,000 events': 'events follow -s long --history --raw',
    '`policy check` of 100,000 events': `policy check ${rules} ${events} --raw`,
  }
  return Object.entries(jobs).map(([work, argv]) => ({
    work,
    against: '`jq -c` over the same bytes',
    job: { command: `'${node}' '${parley}' ${argv} -q > ${temporary('listed')}`, env: credentials(url) },
    baseline: { command: `jq -c . ${events} > ${temporary('listed2')}` },
    rounds: 3,
    budget: [2, 2],
    memory: 110,
    tools: ['jq'],
  }))
}
