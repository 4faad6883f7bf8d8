import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

const event = (fields: object) => ({
  id: 'sevt_01HZX3N5T8Q2M4K6J7WV93F2A',
  type: 'agent.message',
  processed_at: '2026-01-01T12:34:56Z',
  ...fields,
})
const saying = (content: string, fields: object = {}) => event({ content, ...fields })

/** Runs `events list` on a terminal. Returns the header and the other lines. */
async function list(events: object[], columns: number) {
  const exchange = answering(JSON.stringify({ data: events }))
  const env = { PARLEY_SESSION: 'sesn_1' }
  const { out } = await run(['events', 'list'], { exchange, env, tty: ['stdout'], columns })
  const [head = '', ...lines] = out.split('\n').slice(0, -1)
  return { head, rows: lines }
}

/** Returns the width of a line in terminal columns. Supports only the characters that these tests use. */
const countColumns = (line: string) =>
  [...line.replaceAll(/[\u0301\u200d]/g, '')].reduce(
    (sum, char) => sum + (/[日本語🦊]/u.test(char) ? 2 : 1),
    0,
  )

const long = 'word '.repeat(100)

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
test.each<[what: string, type: string, fields: object, text: string]>([
  [
    'the thread, agent and workflow run of a new child thread',
    'session.thread_created',
    { ...child, ...workflow },
    'sthr_1 reader wrun_1',
  ],
  [
    'the tool uses for which a child thread waits',
    'session.thread_status_idle',
    { ...child, stop_reason: waits },
    'sthr_1 reader requires_action toolu_1 toolu_2',
  ],
  [
    'the name and description of a new workflow run',
    'workflow_run.created',
    { ...workflow, name: 'compare', description: 'reads all', phases: [] },
    'wrun_1 compare: reads all',
  ],
  ['the error of a run', 'workflow_run.status_ended', { ...workflow, result: timeout }, 'wrun_1 error: slow'],
  ['the message and code of an error', 'session.error', { error: noCredit }, 'no credit (no_credit_code)'],
  [
    'the input of a refused tool use and the reason of the refusal',
    'agent.tool_use',
    { ...remove, evaluation: refused },
    'bash {"command":"rm"}; refused by the service: high_risk',
  ],
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
    const { rows } = await list([{ ...every, type }, other], columns)
    expect(rows.join('')).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  }
})

test('V50: events list on a terminal of 120 columns prints whole ids and cuts the text', async () => {
  const { head, rows } = await list([saying(long)], 120)
  expect(head).toMatch(/^ID +TYPE +TIME +TEXT$/)
  expect(rows[0]).toMatch(/^sevt_\w{25} {2}agent\.message {2}2026-01-0. ..:..:56 {2}word/)
  expect(rows[0]?.length).toBeLessThanOrEqual(120)
  expect(rows[0]?.length).toBeGreaterThan(115)
})

test('V50: events list on a terminal of 80 columns prints the text of each event on its own line', async () => {
  const { head, rows } = await list([saying(long)], 80)
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
  const { head, rows } = await list([saying(long, { type })], 40)
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
  const { rows } = await list(
    types.map((type) => saying(long, { type, id: 'sevt_1' })),
    columns,
  )
  for (const row of rows) expect(row.length).toBeLessThanOrEqual(columns)
  for (const row of rows) expect(row.length - row.indexOf('word')).toBeGreaterThan(5)
  expect(rows[0]).toMatch(/^sevt_1 {2}session\.(…|status_)(re)?(sched)?uled /)
})

test('V52: a table of events is at most as wide as the terminal, and no character is cut in half', async () => {
  const family = '👩\u200d👩\u200d👧'
  const long = ['日本語'.repeat(40), 'e\u0301'.repeat(200), '🦊'.repeat(60), family.repeat(50)]
  const events = [...long, '\ud83d 日'].map((text) => saying(text, { id: 'sevt_1' }))
  for (const columns of [90, 91, 100, 101]) {
    const { rows } = await list(events, columns)
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
  const { rows } = await list(
    texts.map((text) => saying(text)),
    120,
  )
  expect(rows.map((row) => row.length < 400 && row.endsWith('…'))).toEqual([true, true, true])
})
