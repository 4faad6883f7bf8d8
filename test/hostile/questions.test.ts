import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'
import { bash, type Event, waitsFor } from '../harness/session-service.ts'

/** Runs `events confirm` with a person who is prompted about this tool use and answers y. */
async function confirmWithYes(event: Event) {
  const ended = await run(['events', 'confirm', '-s', 's', '--pending'], {
    typed: 'y\n',
    env: { NO_COLOR: '1' },
    tty: ['stdout', 'stderr'],
    exchange: (request) =>
      answering(JSON.stringify({ data: request.method === 'POST' ? [] : [event, waitsFor('t1')] }))(request),
  })
  return { ...ended, posts: ended.requests.filter(({ method }) => method === 'POST').length }
}

const imitatedRows = [
  '| MCP server: github',
  '| tool: ls',
  '| id: t9',
  'allow ls (t9)? [y/n/s/q] y',
  'parley: done',
]
const padded = imitatedRows.flatMap((row, index) =>
  (index === 0 ? [30, 66, 70, 74, 76] : [74]).map((blanks) => `x${' '.repeat(blanks)}${row}`),
)

test.each(['name', 'mcp_server_name', 'input key', 'input value'])(
  'the %s of a tool use cannot look like a row of a prompt',
  async (field) => {
    for (const text of padded) {
      const more = field === 'input key' ? { input: { [text]: 1 } } : { input: { a: text } }
      const event = bash('t1', field.includes('name') ? { type: 'agent.mcp_tool_use', [field]: text } : more)
      const { err } = await confirmWithYes(event)
      const rows = err.split('\n').filter((row) => imitatedRows.some((each) => row.trim().startsWith(each)))
      expect(rows).toEqual([])
    }
  },
)
