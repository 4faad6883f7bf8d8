import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { endTurn, running, userSays } from '../harness/events.ts'
import { answering, type RunOptions, run } from '../harness/run.ts'
import { createSessionService } from '../harness/session-service.ts'

const session = 'sesn_011CZkZAtmR3yMPDzynEDxu7'
const message = { id: 'm', type: 'user.message', content: 'go on' }
const idle = (fields: object = {}) => ({ id: 'i', type: 'session.status_idle', ...fields })
const use = (id: string, input: object) => ({ id, type: 'agent.tool_use', name: 'bash', input })

/** Follows a session that is idle or becomes idle in its stream. */
async function follow(
  { listed, live = [] }: { listed: object[]; live?: object[] },
  { argv = [], ...world }: { argv?: string[] } & RunOptions = {},
) {
  const frames = live.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const stream = answering(`: open\n\n${frames}`, { headers: { 'content-type': 'text/event-stream' } })
  const list = answering(JSON.stringify({ data: listed }))
  const exchange: Exchange = (request) => (request.url.endsWith('/stream') ? stream : list)(request)
  const env = { PARLEY_SESSION: session }
  return run(['events', 'follow', ...argv], { exchange, env, tty: ['stdout', 'stderr'], ...world })
}

const now = new Date().toISOString()
const clock = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.source

const idleNow = (stop_reason: object) => idle({ processed_at: now, stop_reason })
const waitsNow = [use('toolu_1', {}), idleNow({ type: 'requires_action', event_ids: ['toolu_1'] })]
const endedNow = { id: 't', type: 'session.status_terminated', processed_at: now }
const isIdle = `is idle since ${clock}`
test.each<[string, object[], string]>([
  ['names the session', [message], `following ${session}; Ctrl-C stops following, the session continues`],
  ['shows why a session is idle', [idleNow({ type: 'end_turn' })], `${isIdle} \\(end_turn\\); --stay`],
  ['shows that tool uses wait', waitsNow, `${isIdle} \\(tool uses wait for an answer\\)\\n`],
  ['shows when a terminated session ended', [endedNow], `ended at ${clock} \\(terminated\\)\\n`],
])('V57: the first line of events follow %s', async (_, listed, said) => {
  const live = said.startsWith('following') ? [idle({ stop_reason: 'end_turn' })] : []
  const { err } = await follow({ listed, live }, { env: { PARLEY_SESSION: session, NO_COLOR: '1' } })
  expect(err).toMatch(new RegExp(`^parley: (${session} )?${said}`))
  const piped = await follow({ listed, live }, { tty: [] })
  expect(piped.err).not.toContain('following')
})

const long = { command: 'x y '.repeat(2000), more: '日本語' }

test('V58: on a terminal, events follow prints an event without text as one dim line that is cut to fit', async () => {
  const listed = [use('toolu_1', long), { id: 'a', type: 'agent.message', content: 'two\nlines' }, idle()]
  const shown = await follow({ listed }, { argv: ['--history'], columns: 60 })
  const [first = '', ...rest] = shown.out.split('\n')
  expect(first).toMatch(/^\x1b\[2m· agent\.tool_use bash \{"command":"x y .*…\x1b\[22m$/)
  expect(first.replaceAll(/\x1b\[\d+m/g, '').length).toBeGreaterThan(55)
  expect(first.replaceAll(/\x1b\[\d+m/g, '').length).toBeLessThanOrEqual(60)
  expect(rest).toEqual(['two', 'lines', '\x1b[2m· session.status_idle\x1b[22m', ''])
  const piped = await follow({ listed }, { argv: ['--history'], tty: [] })
  expect(piped.out).toContain(`bash ${JSON.stringify(long)}`)
})

const exchange = answering(JSON.stringify({ data: [message, { id: 'n', type: 'brand.new' }] }))
const list = (...argv: string[]) =>
  run(['events', 'list', ...argv], { exchange, env: { PARLEY_SESSION: session } })

test('V60: events list --type prints a note if no event has the type', async () => {
  const { code, out, err } = await list('--type', 'agent.mesage', '--type', 'idle,status_idle')
  expect({ code, out }).toEqual({ code: 0, out: '' })
  expect(err).toBe('parley: no event has the type agent.mesage or idle or status_idle\n')
  expect(await list('--type', 'brand.new')).toMatchObject({ code: 0, err: '' })
})

const source = '# Result\n\n- **all good** and `code`\n\n|a|b|\n|-|-|\n|1|2|'
const laidOut = 'Result\n\n• all good and code\n\na │ b\n──┼──\n1 │ 2\n'
const said = { id: 'a', type: 'agent.message', content: [{ type: 'text', text: source }] }
const live = [message, said, idle({ stop_reason: 'end_turn' })]
const env = { PARLEY_SESSION: session, NO_COLOR: '1' }

test("events follow lays out an agent's message as Markdown on a terminal, also with --history", async () => {
  expect((await follow({ listed: [], live }, { env })).out).toContain(`\n${laidOut}`)
  expect((await follow({ listed: live }, { env, argv: ['--history'] })).out).toContain(`\n${laidOut}`)
  const { out } = await follow({ listed: [], live })
  expect(out).toContain('\x1b[1;4;35mResult\x1b[0m')
})

test("events follow escapes control characters in an agent's message", async () => {
  const hostile = { ...said, content: 'a\x1b[2J\u202eb' }
  for (const PARLEY_MARKDOWN of ['true', 'false']) {
    const world = { env: { ...env, PARLEY_MARKDOWN } }
    const { out } = await follow({ listed: [], live: [message, hostile, idle()] }, world)
    expect(out).toContain('a^[[2J\\u202eb\n')
  }
})

test('on a terminal, events follow prints status and usage events only with -v', async () => {
  const thinking = { type: 'agent.thinking' }
  const history = [userSays('x'), running, thinking, { type: 'session.usage', usage: {} }, endTurn]
  const service = createSessionService({ history })
  const list = async (...flags: string[]) => {
    const { out } = await service.run(['events', 'follow', '--history', ...flags], { tty: ['stdout'] })
    return out.match(/(?<=· )(agent|session)[a-z._]+/g)
  }
  expect(await list()).toEqual([thinking.type, endTurn.type])
  expect(await list('-v')).toEqual(history.slice(1).map(({ type }) => type))
})

const event = (fields: object) => ({
  id: 'sevt_01HZX3N5T8Q2M4K6J7WV93F2A',
  type: 'agent.message',
  processed_at: '2026-01-01T12:34:56Z',
  ...fields,
})
const saying = (content: string, fields: object = {}) => event({ content, ...fields })

/** Runs `events list` on a terminal. Returns the header and the other lines. */
async function listOn(events: object[], columns: number) {
  const exchange = answering(JSON.stringify({ data: events }))
  const env = { PARLEY_SESSION: 'sesn_1' }
  const { out } = await run(['events', 'list'], { exchange, env, tty: ['stdout'], columns })
  const [head = '', ...lines] = out.split('\n').slice(0, -1)
  return { head, rows: lines }
}

/** Returns the width of a line in terminal columns. Supports only the characters that these tests use. */
const countColumns = (line: string) =>
  [...line.replaceAll(/[\u0301\u200d]/g, '').replaceAll(/[日本語🦊]/gu, '  ')].length

const manyWords = 'word '.repeat(100)

test('events list prints a note on stderr if a session has no events, but not with -q', async () => {
  const world = { exchange: answering('{"data":[]}'), env: { PARLEY_SESSION: 's1' }, stdin: '' }
  const err = 'parley: no events\n'
  expect(await run(['events', 'list'], world)).toMatchObject({ code: 0, out: '', err })
  expect(await run(['events', 'list', '-q'], world)).toMatchObject({ code: 0, out: '', err: '' })
})

const child = { session_thread_id: 'sthr_1', agent_name: 'reader' }
const workflow = { workflow_run_id: 'wrun_1' }
const waits = { type: 'requires_action', event_ids: ['toolu_1', 'toolu_2'] }
const timeout = { type: 'error', error: { type: 'timeout_error', message: 'slow' } }
const noCredit = { message: 'no credit', details: { error_code: 'no_credit_code' } }
const refused = { type: 'auto', evaluated_permission: { type: 'deny', reason_code: 'high_risk' } }
const remove = { name: 'bash', input: { command: 'rm' }, evaluated_permission: 'deny' }
const childWaits = { ...child, stop_reason: waits }
const named = { ...workflow, name: 'compare', description: 'reads all', phases: [] }
const refusedText = 'bash {"command":"rm"}; refused by the service: high_risk'
test.each<[what: string, type: string, fields: object, text: string]>([
  ['a new child thread', 'session.thread_created', { ...child, ...workflow }, 'sthr_1 reader wrun_1'],
  [
    'a waiting child thread',
    'session.thread_status_idle',
    childWaits,
    'sthr_1 reader requires_action toolu_1 toolu_2',
  ],
  ['a new workflow run', 'workflow_run.created', named, 'wrun_1 compare: reads all'],
  ['the error of a run', 'workflow_run.status_ended', { ...workflow, result: timeout }, 'wrun_1 error: slow'],
  ['the message and code of an error', 'session.error', { error: noCredit }, 'no credit (no_credit_code)'],
  ['why a tool use was refused', 'agent.tool_use', { ...remove, evaluation: refused }, refusedText],
])('events list prints %s', async (_, type, fields, text) => {
  const exchange = answering(JSON.stringify({ data: [{ type, ...fields }] }))
  const { out } = await run(['events', 'list', '-s', 's1'], { exchange })
  expect(out.split('\t')[3]).toBe(`${text}\n`)
})

test.each([20, 80, 120])('events list escapes control characters on %i columns', async (columns) => {
  const hostile = '\u001b]0;x\u0007\u009b2J\u202e\ny'
  const fields = 'id type processed_at content tool_use_id result name deny_message'.split(' ')
  const every = Object.fromEntries(fields.map((name) => [name, hostile]))
  const other = saying(hostile, { id: hostile.repeat(5) })
  for (const type of ['user.tool_confirmation', 'agent.tool_use', hostile]) {
    const { rows } = await listOn([{ ...every, type }, other], columns)
    expect(rows.join('')).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  }
})

test('V50: events list on a terminal of 120 columns prints whole ids and cuts the text', async () => {
  const { head, rows } = await listOn([saying(manyWords)], 120)
  expect(head).toMatch(/^ID +TYPE +TIME +TEXT$/)
  expect(rows[0]).toMatch(/^sevt_\w{25} {2}agent\.message {2}2026-01-0. ..:..:56 {2}word/)
  expect(rows[0]?.length).toBeLessThanOrEqual(120)
  expect(rows[0]?.length).toBeGreaterThan(115)
})

test('V50: events list on a terminal of 80 columns prints the text of each event on its own line', async () => {
  const { head, rows } = await listOn([saying(manyWords)], 80)
  expect(head).toBe('ID                              TYPE           TIME')
  expect(rows).toEqual([
    '  TEXT',
    expect.stringMatching(/^sevt_\w{25} {2}agent\.message {2}2026-01-0. ..:..:56$/),
    expect.stringMatching(/^ {2}word( word)* \w+…$/),
  ])
  for (const row of rows) expect(row.length).toBeLessThanOrEqual(80)
})

const onlyTime = /^ {2}2026-01-0. ..:..:56$/
test.each([
  ['agent.message', ['  TYPE           TIME'], [/^ {2}agent\.message {2}2026-01-0. ..:..:56$/]],
  ['session.status_running', ['  TYPE', '  TIME'], [/^ {2}session\.status_running$/, onlyTime]],
])('events list on a terminal of 40 columns breaks no word of the event %s', async (type, titles, lines) => {
  const { head, rows } = await listOn([saying(manyWords, { type })], 40)
  expect(head).toBe('ID')
  expect(rows).toEqual([
    ...titles,
    '  TEXT',
    expect.stringMatching(/^sevt_\w{25}$/),
    ...lines.map((line) => expect.stringMatching(line)),
    expect.stringMatching(/^ {2}word( word)* \w*…$/),
  ])
})

test.each([100, 120])('V51: events list cuts long event types on %i columns', async (columns) => {
  const types = ['session.status_rescheduled', `x.${'y'.repeat(5000)}`, 'é'.repeat(90)]
  const long = types.map((type) => saying(manyWords, { type, id: 'sevt_1' }))
  const { rows } = await listOn(long, columns)
  for (const row of rows) expect(row.length).toBeLessThanOrEqual(columns)
  for (const row of rows) expect(row.length - row.indexOf('word')).toBeGreaterThan(5)
  expect(rows[0]).toMatch(/^sevt_1 {2}session\.(…|status_)(re)?(sched)?uled /)
})

test('V52: a table of events is at most as wide as the terminal, and no character is cut in half', async () => {
  const family = '👩\u200d👩\u200d👧'
  const long = ['日本語'.repeat(40), 'e\u0301'.repeat(200), '🦊'.repeat(60), family.repeat(50)]
  const events = [...long, '\ud83d 日'].map((text) => saying(text, { id: 'sevt_1' }))
  for (const columns of [90, 91, 100, 101]) {
    const { rows } = await listOn(events, columns)
    for (const row of [0, 1, 2].map((index) => rows[index] ?? '')) {
      expect(countColumns(row)).toBeLessThanOrEqual(columns)
      expect(countColumns(row)).toBeGreaterThan(columns - 3)
    }
    expect(rows[1]).toMatch(/e\u0301…$/)
    expect(rows[3]?.replaceAll(family, '')).toMatch(/^[^\u200d]*56 {2}…$/)
    expect(rows[4]).toMatch(/\ufffd 日$/)
    expect(rows.join('')).not.toMatch(/\p{Cs}/u)
  }
})

test('V56: events list cuts texts of millions of characters, blanks or combining marks in a table', async () => {
  const texts = [`e${'\u0301'.repeat(2e6)}`, ' \n'.repeat(2e6), '日'.repeat(2e6)]
  const long = texts.map((text) => saying(text))
  const { rows } = await listOn(long, 120)
  expect(rows.map((row) => row.length < 400 && row.endsWith('…'))).toEqual([true, true, true])
})
