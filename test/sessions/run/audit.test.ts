import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Deadline } from '../../../src/deadline.ts'
import { parseToolUse } from '../../../src/sessions/policy/tool-use.ts'
import { Audit } from '../../../src/sessions/running/audit.ts'
import type { RunPlan } from '../../../src/sessions/running/plan.ts'
import { createSteadyClock } from '../../harness/clock.ts'
import { homeVariables, openCacheFolder, ownerOnlyMode, temporaryFolder } from '../../harness/run.ts'

const time = '2026-01-01T00:00:00.000Z'

/** Returns a line of session `s1` that is not about a tool use. */
const line = (fields: object) => JSON.stringify({ time, session: 's1', toolUse: null, ...fields })

/** Opens an audit, with or without a file, for a user whose home is `cwd`. */
function openIn(cwd: string, file: string | undefined, deadlineMs = Infinity) {
  const timers = { ...createSteadyClock(1), wallTime: () => Date.parse(time) }
  const deadline = new Deadline(timers, deadlineMs)
  const host = { env: homeVariables(cwd), cwd, openCacheFolder }
  const context = { host: { ...host, timers }, messages: { note() {} }, cleanups: new Set() }

  const parts = { params: { session: 's1' }, deadline }
  const plan = { address: 'https://agents.test', auditPath: file, parts } as unknown as RunPlan
  return Audit.open(context as unknown as Context, plan)
}

/** Opens an audit file with this content in a new folder. */
async function open(content?: string | Uint8Array, cwd = temporaryFolder()) {
  const path = join(cwd, 'a.ndjson')
  if (content !== undefined) writeFileSync(path, content)
  const audit = await openIn(cwd, 'a.ndjson')
  return { audit, path, read: () => readFileSync(path, 'utf8') }
}

/** Opens an audit file with these lines, and returns the result of `read`. */
async function readAudit<T>(lines: string[], read: (audit: Audit) => T): Promise<T> {
  const { audit } = await open(lines.map((each) => `${each}\n`).join(''))
  const found = read(audit)
  audit.close()
  return found
}

const use = (event: string, more: object = {}) => line({ toolUse: 't1', event, ...more })
const result = (text: string, more: object = {}) => ({
  result: { type: 'user.tool_result', content: [{ type: 'text', text }], ...more },
})
const sentAtMs = Date.parse(time)

const sent = use('sent', { rest: 'r1' })
const isSent = { sent: { sentAtMs, lastIdleEvent: 'r1' } }
const badTime = { sent: { sentAtMs: Number.NaN, lastIdleEvent: undefined } }
const badRest = { sent: { sentAtMs, lastIdleEvent: undefined } }
const hasResult = (isError: boolean) => ({ is: 'has-result', result: { text: 'a', isError } })
const torn = use('start').slice(0, 40)
test.each<[title: string, lines: string[], reply: object | undefined]>([
  ['a result with an invalid is_error', [use('end', result('a', { is_error: 'true' }))], hasResult(false)],
  ['a result of a failed command', [use('end', result('a', { is_error: true }))], hasResult(true)],
  ['an "end" line without a result (earlier version)', [use('start'), use('end')], { is: 'executing' }],
  ['a sent reply', [sent], { is: 'posting', ...isSent }],
  ['a sent reply with an invalid time', [use('sent', { time: 'noon' })], { is: 'posting', ...badTime }],
  ['a sent reply with an invalid idle event', [use('sent', { rest: 5 })], { is: 'posting', ...badRest }],
  ['an accepted reply', [sent, use('accepted')], { is: 'closed', ...isSent }],
  ['a refused reply', [sent, use('refused')], { is: 'deciding' }],
  ['a reply of unknown delivery', [sent, use('unknown')], { is: 'unconfirmed', ...isSent }],
  ['a reply of another session', [use('decision', { session: 's2' })], undefined],
  ['empty lines after a decision', [use('decision'), '', ''], { is: 'deciding' }],
  ['an incomplete line between others', [use('decision'), torn, use('decision')], { is: 'deciding' }],
])('Audit restores the state of a reply from a file with %s', async (_, lines, reply) => {
  expect(await readAudit(lines, ({ replies }) => replies.get('t1'))).toEqual(reply)
})

const denied = (more: object = {}) =>
  use('decision', { decision: 'deny', name: 'bash', by: 'default', ...more })

test.each<[title: string, denial: string, lines: string[]]>([
  ['a denial by a rule', 'deny bash t1 (rules[2]: no)', [denied({ by: 'rule', rule: 2, reason: 'no' })]],
  ['a denial with input', 'deny bash {"command":"ls"} t1 (default)', [denied({ input: { command: 'ls' } })]],
  ['a posted denial', 'deny bash t1 (default)', [denied(), use('sent'), use('accepted')]],
  ['a denied tool use that ran', 'ran despite deny bash t1 (default)', [denied({ event: 'not-asked' })]],
  ['a denial and a later allow', 'none', [denied(), use('decision', { decision: 'allow' })]],
  ['a denial and the reply of another client', 'none', [denied(), use('answered-elsewhere')]],
])('from an audit file with %s, parley restores this denial of a tool use: %s', async (_, denial, lines) => {
  expect(await readAudit(lines, (audit) => audit.denied.get('t1')?.text ?? 'none')).toBe(denial)
})

test('Audit.add records a denial, also without a file', async () => {
  const audit = await openIn(temporaryFolder(), undefined)
  audit.add({ toolUse: 't1', event: 'decision', decision: 'deny', by: 'default', name: 'bash' })
  audit.close()
  expect(audit.denied.get('t1')?.text).toBe('deny bash t1 (default)')
})

test.each([
  ['never', use('decision'), -Infinity, 1],
  ['at the time of the line', use('answered-elsewhere'), sentAtMs, 1],
  ['never', line({ event: 'start' }), -Infinity, 0],
])('an earlier run found another answer %s if the audit file has %s', async (_, text, at, count) => {
  expect(await readAudit([text], (audit) => [audit.answeredElsewhereAt, audit.replies.size])).toEqual([
    at,
    count,
  ])
})

const decided = (input: unknown, more: object = {}) =>
  use('decision', { type: 'agent.tool_use', name: 'bash', input, ...more })

const [same, other] = [decided({ b: 2, a: 1 }), decided({ a: 1 })]
test.each<['equals' | 'differs from', title: string, lines: string[]]>([
  ['equals', 'no input', [use('decision')]],
  ['equals', 'the same input in another key order', [same]],
  ['differs from', 'another input', [other]],
  ['differs from', 'the same input and another input', [same, other, same]],
  ['equals', 'another input in a line that is not a decision', [use('sent', { input: { a: 1 } })]],
])('a tool use %s the recorded tool use if the audit file has %s', async (expected, _, lines) => {
  const text = '{"id":"t1","type":"agent.tool_use","name":"bash","input":{"a":1,"b":2}}'
  const isDifferent = await readAudit(lines, (audit) => audit.differsFromDecidedToolUse(parseToolUse(text)))
  expect(isDifferent).toBe(expected === 'differs from')
})

const known = { alike: 1, last: 'e1', marks: ['m'] }
const task = (event: string, more: object = {}) => line({ task: 'h1', event, ...more })

const sentTask = task('sent', { known })
const posting = { hash: 'h1', is: 'posting', known }
test.each<[title: string, lines: string[], task: object | undefined]>([
  ['a sent task', [sentTask], posting],
  ['an accepted task', [sentTask, task('accepted')], { ...posting, is: 'accepted' }],
  ['a task of unknown delivery', [sentTask, task('unknown')], posting],
  ['a refused task', [sentTask, task('refused')], undefined],
  ['a done task', [sentTask, task('accepted'), task('done')], undefined],
  ['a task whose hash is not a text', [task('sent', { known, task: 5 })], undefined],
  ['a task of another session', [task('sent', { known, session: 's2' })], undefined],
])(
  'events run resumes the last task of the audit file unless it was refused or done: %s',
  async (_, lines, state) => {
    expect(await readAudit(lines, (audit) => audit.task)).toEqual(state)
  },
)

const started = use('start', { name: 'x' })
const failed = use('end', { name: 'x', ...result('a', { is_error: true }) })
test.each<[title: string, lines: string[], commands: string[]]>([
  ['an unfinished command', [started], ['x t1: interrupted, effect unknown']],
  ['a failed command', [started, failed], ['x t1: failed']],
  ['a command that succeeded', [started, use('end', { name: 'x', ...result('a') })], []],
  [
    'a failed command after the last task',
    [failed, task('accepted'), use('sent'), task('sent', { task: 5 })],
    ['x t1: failed'],
  ],
  ['a failed command before the last task', [failed, task('sent')], []],
  ['an accepted error', [use('accepted', result('a', { is_error: true }))], []],
  ['a line without a tool use', [line({ event: 'start', name: 'x' })], []],
])('events run reports failed or unfinished commands since the last task: %s', async (_, lines, commands) => {
  expect(await readAudit(lines, (audit) => [...audit.failedCommands.values()])).toEqual(commands)
  const added = await openIn(temporaryFolder(), undefined)
  for (const each of lines) added.add(JSON.parse(each))
  added.close()
  expect([...added.failedCommands.values()]).toEqual(commands)
  const add = () => added.add({ toolUse: null, event: 'interrupt' })
  expect(add).toThrow('this run has already ended its work on s1')
})

const interruptLine = line({ event: 'interrupt' })

test.each<['is true' | 'is false', title: string, lines: string[]]>([
  ['is false', 'only a reply', [use('sent')]],
  ['is false', 'a refused interrupt', [interruptLine, line({ event: 'refused' })]],
  ['is true', 'an interrupt and a refused reply', [interruptLine, use('refused')]],
  ['is true', 'an interrupt and a refused task', [interruptLine, task('refused')]],
  ['is false', 'an interrupt and a later task', [interruptLine, task('sent')]],
])('Audit.hasInterrupt %s if the audit file has %s', async (expected, _, lines) => {
  expect(await readAudit(lines, (audit) => audit.hasInterrupt)).toBe(expected === 'is true')
})

test('Audit.add appends a line to the file, and updates the task and `hasInterrupt`', async () => {
  const { audit, read } = await open()
  expect(audit).toMatchObject({ task: undefined, hasInterrupt: false })
  audit.add({ toolUse: null, event: 'sent', task: 'h1', known: { alike: 1, marks: [] } })
  expect(audit.task).toEqual({ hash: 'h1', is: 'posting', known: { alike: 1, marks: [] } })
  audit.add({ toolUse: null, event: 'accepted', task: 'h1' })
  expect(audit.task?.is).toBe('accepted')
  audit.add({ toolUse: null, event: 'interrupt' })
  expect(audit.hasInterrupt).toBe(true)
  const head = `{"time":"${time}","session":"s1","toolUse":null`
  const taskLines = `${head},"task":"h1","event":"sent","known":{"alike":1,"marks":[]}}\n${head},"task":"h1","event":"accepted"}\n`
  expect(read()).toBe(`${taskLines}${head},"event":"interrupt"}\n`)
  audit.close()
})

test('the fields of an audit line have a fixed order, and the input keeps its source text', async () => {
  const { audit, read } = await open()
  audit.add({
    ...{
      decision: { decision: 'allow' } as never,
      by: 'rule',
      rule: 0,
      result: { type: 'x' },
      reason: 'why',
    },
    ...{
      event: 'decision',
      input: '{"n":1.0}',
      name: 'n',
      server: 's',
      type: 't',
      task: 'h1',
      toolUse: 't1',
    },
  })
  audit.close()
  expect(read()).toBe(
    `{"time":"${time}","session":"s1","toolUse":"t1","task":"h1","type":"t","server":"s","name":"n",` +
      '"input":{"n":1.0},"event":"decision","decision":{"decision":"allow"},"by":"rule","rule":0,"result":{"type":"x"},' +
      '"reason":"why"}\n',
  )
})

const start = `${use('start')}\n`
test.each([
  ['removes an incomplete last line', start, torn, ''],
  ['keeps an incomplete line with a line break', start, `${torn}\n`, `${torn}\n`],
  ['adds a line break to a line without one', start, use('end'), `${use('end')}\n`],
  [
    'adds a line break if another session has lines',
    use('start', { session: 's2' }),
    `\n${torn}`,
    `\n${torn}\n`,
  ],
])('events run %s when it continues an audit file', async (_, before, end, kept) => {
  const { audit, read } = await open(before + end)
  audit.add({ toolUse: null, event: 'interrupt' })
  audit.close()
  const added = `{"time":"${time}","session":"s1","toolUse":null,"event":"interrupt"}\n`
  expect(read()).toBe(before + kept + added)
})

test.each([
  ['a new audit file', 0, ownerOnlyMode],
  ['an audit file of mode 0644', 0o644, 0o600],
  ['an audit file of mode 0601', 0o601, 0o600],
  ['an audit file of mode 0700', 0o700, 0o700],
])('events run gives only the owner access to %s (needs POSIX files)', async (_, mode, left) => {
  const cwd = temporaryFolder(mode === 0 ? {} : { 'a.ndjson': '' })
  if (mode > 0) chmodSync(join(cwd, 'a.ndjson'), mode)
  const { audit, path } = await open(undefined, cwd)
  audit.close()
  expect(statSync(path).mode & 0o777).toBe(left)
})

test('without --audit, events run records nothing, but still locks the session', async () => {
  const cwd = temporaryFolder()
  const audit = await openIn(cwd, undefined)
  expect([...audit.replies, audit.task, audit.hasInterrupt]).toEqual([undefined, false])
  audit.add({ toolUse: null, event: 'interrupt' })
  expect(audit.hasInterrupt).toBe(false)
  await expect(openIn(cwd, undefined, 0)).rejects.toMatchObject({ kind: 'file', details: { deadline: true } })
  audit.close()
  const next = await openIn(cwd, undefined, 0)
  next.close()
})

test('Audit.open releases its locks if the file is not an audit file', async () => {
  const cwd = temporaryFolder()
  await expect(open('text\n', cwd)).rejects.toThrow('line 1 is not an audit line')
  const { audit } = await open('', cwd)
  audit.close()
  const again = await open('', cwd)
  again.audit.close()
})

test.each([
  ['has no line break', use('start'), { is: 'executing' }],
  ['is incomplete', '{"time":"2026-01-01T00:00:00.000Z","session":"s1","eve\n', undefined],
])('an audit file is read up to its last complete line, if its last line %s', async (_, text, reply) => {
  const { audit } = await open(text)
  expect(audit.replies.get('t1')).toEqual(reply)
  audit.close()
})

test.each([
  ['starts with an empty line', `\n${line({ event: 'start' })}`],
  ['has an unknown event', line({ event: 'other' })],
  ['has a number as time', line({ event: 'start', time: 5 })],
  ['has a number as session', line({ event: 'start', session: 5 })],
])('a file that %s is not an audit file', async (_, text) => {
  await expect(open(text)).rejects.toMatchObject({
    kind: 'file',
    message: 'the audit file a.ndjson: line 1 is not an audit line; name another file',
  })
})
