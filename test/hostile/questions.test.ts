import { expect, test } from 'vitest'
import { bash, waitsFor } from '../harness/events.ts'
import { atTerminal, createSessionService } from '../harness/session-service.ts'

const imitatedRows = [
  '| MCP server: git',
  '| tool: ls',
  '| id: t9',
  'allow ls (t9)? [y/n/s/q] y',
  'parley: done',
]
const padded = imitatedRows.flatMap((row, index) =>
  (index === 0 ? [30, 66, 70, 74, 76] : [74]).map((blanks) => `x${' '.repeat(blanks)}${row}`),
)

test.each(['id', 'name', 'mcp_server_name', 'input key', 'input value'])(
  'the %s of a tool use cannot look like a row of a prompt',
  async (field) => {
    for (const text of padded) {
      const more = field === 'input key' ? { input: { [text]: 1 } } : { input: { a: text } }
      const event = bash('t1', field.includes('input') ? more : { type: 'agent.mcp_tool_use', [field]: text })
      const service = createSessionService({ history: [event, waitsFor(String(event.id))] })
      const { err } = await service.run(['events', 'confirm', '--pending'], atTerminal('y\n'))
      const rows = err.split('\n').filter((row) => imitatedRows.some((each) => row.trim().startsWith(each)))
      expect([rows, err]).toEqual([[], expect.stringContaining('[y/n/s/q] ')])
    }
  },
)
