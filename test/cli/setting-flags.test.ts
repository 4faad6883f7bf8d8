import { expect, test } from 'vitest'
import { run } from '../harness/run.ts'

const list = 'events list -s s'
const send = 'events send -s s --no-stdin'

test.each([
  ['chat hi --family beta', '/beta_cli/v1beta/models/'],
  ['chat hi --base-url https://other.test', '"url": "https://other.test/'],
  ['chat hi --stream-via path --stream', ':streamGenerateContent'],
  [`${list} --agents-url https://other.test`, '"url": "https://other.test/'],
  [`${list} --vendor other`, '"other-version": "'],
  [`${list} --agents-version 2024-01-01`, '"vendor-version": "2024-01-01"'],
  [`${list} --betas files-api-2025-04-14`, '"vendor-beta": "files-api-2025-04-14"'],
  [`${list} --workspace-id w1`, '": "w1"'],
  [`${send} --tool-error t1=no`, '{"type":"user.tool_result","tool_use_id":"t1","content":'],
  [
    `${send} --custom-tool-error t1=no`,
    '{"type":"user.custom_tool_result","custom_tool_use_id":"t1","content":',
  ],
])('parley %s changes the request', async (line, part) => {
  const { code, out } = await run([...line.split(' '), '--dry-run'])
  expect([code, out]).toEqual([0, expect.stringContaining(part)])
})
