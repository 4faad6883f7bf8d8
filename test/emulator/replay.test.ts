import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { parseLines, rejected, run, temporaryFolder } from '../harness/run.ts'

/** Creates a folder with a policy that allows everything. */
const folder = () => temporaryFolder({ 'allow.json': '{"rules":[],"default":{"decision":"allow"}}' })

const task =
  'use bash {"command":"ls"}\nuse read_file {"path":"a"}\nthen use custom deploy {}\nthen say {"text":"{\\"verdict\\":\\"pass\\"}"}'
const runIt = ['events', 'run', '-s', 's1', '--no-stdin', '--policy', 'allow.json', '--tool', 'deploy=cat']

/** Records a session of the emulated agent, and the result of its run. */
async function record(cwd: string, text = task) {
  const exchange = createEmulator({})
  const ended = await run([...runIt, text], { cwd, exchange })
  const { out } = await run(['events', 'list', '-s', 's1', '--raw'], { cwd, exchange })
  return { ended, out }
}

const play = (out: string): Exchange =>
  createEmulator({ record: parseLines(out).map((event) => ({ event, text: JSON.stringify(event) })) })

test('a replayed run ends like the recorded run: same answer, exit code and decisions (needs sh)', async () => {
  const cwd = folder()
  const { ended, out } = await record(cwd)
  expect(ended.code).toBe(0)
  const exchange = play(out)
  expect(await run([...runIt, task], { cwd, exchange })).toMatchObject({ code: 0, out: ended.out })
  const { out: listed } = await run(['events', 'list', '-s', 's1', '--raw'], { cwd, exchange })
  expect(parseLines(listed)).toEqual(parseLines(out))
  const judged = await run([...runIt, 'another wording of the task', '--last'], { cwd, exchange: play(out) })
  expect(judged).toMatchObject({ code: 0, out: '{"verdict":"pass"}\n' })
})

test('a replay lists the recorded events only up to the next event that a client must send (needs sh)', async () => {
  const cwd = folder()
  const { out } = await record(cwd)
  const exchange = play(out)
  const world = { cwd, exchange, env: { PARLEY_SESSION: 's1' } }
  const send = (...argv: string[]) => run(['events', 'send', ...argv], world)
  expect((await run(['events', 'list', '--ids'], world)).out).toBe('')
  const wrong = await send('--interrupt')
  expect(wrong).toMatchObject({ code: 4, out: '', err: expect.stringContaining('409') })
  expect(wrong.err).toContain('events[0]: expected user.message, event 1 of ')
  expect(await send('hello', '--follow')).toMatchObject({ code: 12 })
  const [first] = parseLines(out)
  const [sent] = parseLines((await run(['events', 'list', '--raw'], world)).out)
  expect(sent).toEqual({ ...first, content: [{ type: 'text', text: 'hello' }] })
  const uses = parseLines(out).filter(({ type }) => type === 'agent.tool_use')
  const [, two] = uses.map(({ id }) => id)
  const confirm = (...argv: string[]) => run(['events', 'confirm', '--allow', ...argv], world)
  expect((await confirm('toolu_other')).err).toContain('409')
  expect((await confirm(two)).code).toBe(0)
  expect(await confirm('--pending', '--follow')).toMatchObject({ code: 12 })
  const custom = parseLines(out).find(({ type }) => type === 'agent.custom_tool_use')
  expect(await send('--follow', '--custom-tool-result', `${custom.id}=other`)).toMatchObject({ code: 0 })
  const end = expect.stringContaining('events[0]: the recording has no further event')
  expect(await send('more')).toMatchObject({ code: 4, err: end })
})

test.each([
  ['', 'no events: s.ndjson is empty'],
  ['# a note', "not valid JSON: line 1, column 1: value expected; 'parley events list --raw' prints"],
  ['{"type":"user.message"}\n5', 's.ndjson: line 2: is not an event'],
])('serve --session exits with 2 for the invalid recording %j', async (text, expectedText) => {
  const cwd = temporaryFolder({ 's.ndjson': text })
  const ended = await run(['serve', '--session', 's.ndjson', '--port', '65536'], { cwd })
  expect(ended).toMatchObject(rejected(2, expectedText))
})

test('a replay with threads and workflow runs ends like the recorded session', async () => {
  const cwd = folder()
  const all = [
    'thread use bash {"command":"ls"}',
    'then start review {"phases":["read"]}',
    'then refuse bash {}',
    'then fail github {}',
    'then say {"text":"all is well"}',
  ].join('\n')
  const { ended, out } = await record(cwd, all)
  expect(ended, ended.err).toMatchObject({ code: 0 })
  const again = await run([...runIt, 'the same', '--last'], { cwd, exchange: play(out) })
  expect(again, again.err).toMatchObject({ code: 0, out: 'all is well\n' })
  expect(again.err).toContain('waiting for the workflow run review')
  expect(again.err).toContain('the service refused the tool use')
  expect(again.err).toContain('the MCP server github failed permanently')
})
