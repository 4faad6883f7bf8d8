import { describe, expect, test } from 'vitest'
import { createIdleClock } from '../harness/clock.ts'
import { answering, run } from '../harness/run.ts'

type Event = { type: string } & Record<string, unknown>

const use = (more: object = {}): Event => ({
  id: 't1',
  type: 'agent.tool_use',
  name: 'bash',
  input: { command: 'git status' },
  ...more,
})
const waits: Event = { id: 'i', type: 'session.status_idle', stop_reason: { event_ids: ['t1'] } }

/**
 * Runs `events confirm` with a person who answers y. Each list request gets the next list, then the last one.
 */
async function confirmWithYes(lists: Event[][]) {
  let count = 0
  const ended = await run(['events', 'confirm', '-s', 's', '--pending'], {
    typed: 'y\n',
    env: { NO_COLOR: '1' },
    tty: ['stdout', 'stderr'],
    exchange(request) {
      const data = request.method === 'POST' ? [] : lists[Math.min(count++, lists.length - 1)]
      return answering(JSON.stringify({ data }))(request)
    },
  })
  return { ...ended, posts: ended.requests.filter(({ method }) => method === 'POST').length }
}

test.each<[string, Event[], number]>([
  ['the session was terminated', [use(), waits, { type: 'session.status_terminated' }], 0],
  ['the list has another tool name', [use(), waits, use({ name: 'write' })], 12],
])('events confirm does not send the answer y if %s after the question', async (_, latest, expected) => {
  const { code, posts, err } = await confirmWithYes([[use(), waits], latest])
  expect({ code, posts }, err).toEqual({ code: expected, posts: 0 })
})

test('events confirm prints that the answer y was not sent if the list request after the question fails', async () => {
  let lists = 0
  const { code, err } = await run(['events', 'confirm', '-s', 's', '--pending', '--retries', '0'], {
    typed: 'y\n',
    tty: ['stdout', 'stderr'],
    timers: createIdleClock(),
    exchange(request) {
      const isAway = ++lists > 1
      const text = isAway ? '{}' : JSON.stringify({ data: [use(), waits] })
      return answering(text, { status: isAway ? 503 : 200 })(request)
    },
  })
  expect(code, err).toBe(7)
  expect(err).toContain('answered 503; your answer to t1 was not sent\n')
})

describe('text of a tool use cannot imitate a question', () => {
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
    'the %s of a tool use cannot imitate a row of the prompt of events confirm',
    async (field) => {
      for (const text of padded) {
        const more = field === 'input key' ? { input: { [text]: 1 } } : { input: { a: text } }
        const event = use(field.includes('name') ? { type: 'agent.mcp_tool_use', [field]: text } : more)
        const { err } = await confirmWithYes([[event, waits]])
        const rows = err.split('\n').filter((row) => imitatedRows.some((each) => row.trim().startsWith(each)))
        expect(rows).toEqual([])
      }
    },
  )

  test.each([[['bash']], [{ toString: 'bash' }], [null], [0]])(
    'events confirm exits with 2 if a tool name is not a string: %j',
    async (name) => {
      const { code, posts } = await confirmWithYes([[use({ name }), waits]])
      expect({ code, posts }).toEqual({ code: 2, posts: 0 })
    },
  )
})
