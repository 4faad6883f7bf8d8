import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Audit, readEntries } from '../../../src/sessions/running/audit.ts'
import { readUse, type Use } from '../../../src/sessions/running/judgement.ts'
import { createSteadyClock } from '../../harness/clock.ts'
import { homeVariables, ownerOnly, temporaryFolder } from '../../harness/run.ts'

const time = '2026-01-01T00:00:00.000Z'

/** A line of the session `s1` that is not about a tool use. */
const line = (fields: object) => JSON.stringify({ time, session: 's1', toolUse: null, ...fields })

/** Opens an audit, or none, for runs at home in a folder. */
function openIn(cwd: string, file: string | undefined, deadline = Infinity) {
  const timers = { ...createSteadyClock(1), wallTime: () => Date.parse(time) }
  const host = { env: homeVariables(cwd), cwd, platform: process.platform, uid: process.getuid?.() }
  const context = { host, timers, note() {}, cleanups: new Set() } as unknown as Context
  return Audit.open(context, { address: 'https://agents.test', session: 's1', deadline }, file)
}

/** Opens an audit in a folder of its own, in which the file may be already. */
async function open(content?: string | Uint8Array, cwd = temporaryFolder()) {
  const path = join(cwd, 'a.ndjson')
  if (content !== undefined) writeFileSync(path, content)
  const audit = await openIn(cwd, 'a.ndjson')
  return { audit, path, read: () => readFileSync(path, 'utf8') }
}

/** What these lines say to the next run, and to the run that writes them itself. */
async function afterLines<T>(lines: string[], look: (audit: Audit) => T): Promise<T> {
  const { audit } = await open(lines.map((each) => `${each}\n`).join(''))
  const found = look(audit)
  audit.close()
  return found
}

const use = (event: string, more: object = {}) => line({ toolUse: 't1', event, ...more })
const result = (text: string, more: object = {}) => ({
  result: { type: 'user.tool_result', content: [{ type: 'text', text }], ...more },
})
const at = Date.parse(time)

test.each<[title: string, lines: string[], reply: object | undefined]>([
  ['nothing', [], undefined],
  ['a decision', [use('decision')], { is: 'deciding' }],
  ['a start', [use('decision'), use('start')], { is: 'working' }],
  ['an end', [use('end', result('a'))], { is: 'ready', result: { text: 'a', isError: false } }],
  [
    'an end with an error',
    [use('end', result('a', { is_error: true }))],
    { is: 'ready', result: { text: 'a', isError: true } },
  ],
  [
    'an end with an odd error',
    [use('end', result('a', { is_error: 'true' }))],
    { is: 'ready', result: { text: 'a', isError: false } },
  ],
  ['an end of an earlier version', [use('start'), use('end')], { is: 'working' }],
  ['an end alone of an earlier version', [use('end')], undefined],
  ['a post', [use('sent', { rest: 'r1' })], { is: 'posting', sent: { at, rests: new Set(['r1']) } }],
  ['a post before any rest', [use('sent')], { is: 'posting', sent: { at, rests: new Set() } }],
  ['a post after an odd rest', [use('sent', { rest: 5 })], { is: 'posting', sent: { at, rests: new Set() } }],
  [
    'a post at an odd time',
    [use('sent', { time: 'noon' })],
    { is: 'posting', sent: { at: Number.NaN, rests: new Set() } },
  ],
  [
    'an acceptance',
    [use('sent', { rest: 'r1' }), use('accepted')],
    { is: 'settled', sent: { at, rests: new Set(['r1']) } },
  ],
  ['a refusal', [use('sent'), use('refused')], { is: 'deciding' }],
  [
    'a doubt',
    [use('sent', { rest: 'r1' }), use('unknown')],
    { is: 'in-doubt', sent: { at, rests: new Set(['r1']) } },
  ],
  ['lines that are not of a reply', ['done', 'not-asked', 'interrupt'].map((event) => use(event)), undefined],
  ['another tool use', [use('decision', { toolUse: 't2' })], undefined],
  ['an odd tool use', [use('decision', { toolUse: ['t1'] })], undefined],
  ['another session', [use('decision', { session: 's2' })], undefined],
  ['an empty line after others', [use('decision'), '', ''], { is: 'deciding' }],
  [
    'a torn line between others',
    [use('decision'), use('start').slice(0, 40), use('decision')],
    { is: 'deciding' },
  ],
])('of a reply a journal with %s tells how far it got', async (_, lines, reply) => {
  expect(await afterLines(lines, ({ earlier }) => earlier.get('t1'))).toEqual(reply)
})

const denied = (more: object = {}) =>
  use('decision', { decision: 'deny', name: 'bash', by: 'default', ...more })

test.each<[title: string, lines: string[], words: string | undefined]>([
  ['an allowance', [use('decision', { decision: 'allow' })], undefined],
  ['a denial', [denied()], 'deny bash t1 (default)'],
  ['a denial by a rule', [denied({ by: 'rule', rule: 2, reason: 'no' })], 'deny bash t1 (rules[2]: no)'],
  ['one that ran', [use('not-asked', { decision: 'deny', name: 'x', by: 'person' })], 'deny x t1 (person)'],
  ['a denial that was posted', [denied(), use('sent'), use('accepted')], 'deny bash t1 (default)'],
  ['an allowance after it', [denied(), use('decision', { decision: 'allow' })], undefined],
  ['somebody else’s answer', [denied(), use('answered-elsewhere')], undefined],
])('of what was denied a journal with %s tells it in words', async (_, lines, words) => {
  expect(await afterLines(lines, (audit) => audit.denied.get('t1'))).toBe(words)
})

const decided = (input: unknown, more: object = {}) =>
  use('decision', { type: 'agent.tool_use', name: 'bash', input, ...more })

test.each<[title: string, lines: string[], hasOther: boolean]>([
  ['nothing', [], false],
  ['a line without an input', [use('decision')], false],
  ['the same, its keys in another order', [decided({ b: 2, a: 1 })], false],
  ['another input', [decided({ a: 1 })], true],
  ['another name', [decided({ a: 1, b: 2 }, { name: 'x' })], true],
  ['another server', [decided({ a: 1, b: 2 }, { server: 's' })], true],
  ['it and another one', [decided({ a: 1, b: 2 }), decided({ a: 1 }), decided({ a: 1, b: 2 })], true],
  ['what is no decision', [use('sent', { input: { a: 1 } })], false],
])('after %s a journal knows whether a tool use is another one', async (_, lines, hasOther) => {
  const text = '{"id":"t1","name":"bash","input":{"a":1,"b":2}}'
  const toolUse = readUse({ id: 't1', type: 'agent.tool_use', text }) as Use
  expect(await afterLines(lines, (audit) => audit.hasOther(toolUse))).toBe(hasOther)
})

const known = { alike: 1, last: 'e1', marks: ['m'] }
const task = (event: string, more: object = {}) => line({ task: 'h1', event, ...more })

test.each<[title: string, lines: string[], task: object | undefined]>([
  ['nothing', [], undefined],
  ['it sent', [task('sent', { known })], { hash: 'h1', is: 'posting', known }],
  [
    'it sent by an earlier version',
    [task('sent')],
    { hash: 'h1', is: 'posting', known: { alike: Infinity } },
  ],
  [
    'it sent beside what is odd',
    [task('sent', { known: { alike: '1' } })],
    { hash: 'h1', is: 'posting', known: { alike: Infinity } },
  ],
  ['it accepted', [task('sent', { known }), task('accepted')], { hash: 'h1', is: 'accepted', known }],
  ['it in doubt', [task('sent', { known }), task('unknown')], { hash: 'h1', is: 'posting', known }],
  ['it refused', [task('sent', { known }), task('refused')], undefined],
  ['it done', [task('sent', { known }), task('accepted'), task('done')], undefined],
  [
    'another one done',
    [task('sent', { known }), task('done', { task: 'h2' })],
    { hash: 'h1', is: 'posting', known },
  ],
  ['an odd one', [task('sent', { known, task: 5 })], undefined],
  ['one of another session', [task('sent', { known, session: 's2' })], undefined],
  [
    'a line that is not of a task',
    [task('sent', { known }), task('start')],
    { hash: 'h1', is: 'posting', known },
  ],
])('of a task a journal with %s tells how far it got', async (_, lines, told) => {
  expect(await afterLines(lines, (audit) => audit.task)).toEqual(told)
})

const begun = line({ event: 'interrupt' })

test.each<[title: string, lines: string[], mayHaveArrived: boolean]>([
  ['nothing', [], false],
  ['a reply alone', [use('sent')], false],
  ['one', [begun], true],
  ['one of an earlier version', [line({ event: 'interrupt', rest: 'r1' })], true],
  ['two', [begun, begun], true],
  ['one that was refused', [begun, line({ event: 'refused' })], false],
  ['one that was accepted', [begun, line({ event: 'accepted' })], true],
  ['a reply refused', [begun, use('refused')], true],
  ['a task refused', [begun, task('refused')], true],
  ['a task after it', [begun, task('sent')], false],
  ['a task in doubt after it', [begun, task('unknown')], true],
])('of interrupts a journal with %s tells whether one may have arrived', async (_, lines, mayHaveArrived) => {
  const begunAt = mayHaveArrived ? Date.parse(time) : undefined
  expect(await afterLines(lines, (audit) => audit.interrupt)).toBe(begunAt)
})

test('what a run adds is on the disk, and counts', async () => {
  const { audit, read } = await open()
  expect(audit).toMatchObject({ task: undefined, interrupt: undefined })
  audit.add({ toolUse: null, event: 'sent', task: 'h1', known: { alike: 1 } })
  expect(audit.task).toEqual({ hash: 'h1', is: 'posting', known: { alike: 1 } })
  audit.add({ toolUse: null, event: 'accepted', task: 'h1' })
  expect(audit.task?.is).toBe('accepted')
  audit.add({ toolUse: null, event: 'interrupt' })
  expect(audit.interrupt).toBe(Date.parse(time))
  const head = `{"time":"${time}","session":"s1","toolUse":null`
  expect(read()).toBe(
    [
      `${head},"task":"h1","event":"sent","known":{"alike":1}}\n`,
      `${head},"task":"h1","event":"accepted"}\n`,
      `${head},"event":"interrupt"}\n`,
    ].join(''),
  )
  audit.close()
})

test('the fields of a line have an order, and the input its spelling', async () => {
  const { audit, read } = await open()
  audit.add({
    decision: { decision: 'allow' } as never,
    by: 'rule',
    rule: 0,
    result: { type: 'x' },
    reason: 'why',
    event: 'decision',
    input: '{"n":1.0}',
    name: 'n',
    server: 's',
    type: 't',
    task: 'h1',
    toolUse: 't1',
  })
  audit.close()
  expect(read()).toBe(
    `{"time":"${time}","session":"s1","toolUse":"t1","task":"h1","type":"t","server":"s","name":"n",` +
      '"input":{"n":1.0},"event":"decision","decision":{"decision":"allow"},"by":"rule","rule":0,"result":{"type":"x"},' +
      '"reason":"why"}\n',
  )
})

test.each([
  ['an empty file', '', ''],
  ['whole lines', `${use('start')}\n`, ''],
  ['a torn line', `${use('start')}\n${use('end').slice(0, 30)}`, '\n'],
])('after %s a line begins on its own', async (_, content, end) => {
  const { audit, read } = await open(content)
  audit.add({ toolUse: null, event: 'interrupt' })
  audit.close()
  expect(read()).toBe(
    `${content}${end}{"time":"${time}","session":"s1","toolUse":null,"event":"interrupt"}\n`,
  )
})

test('its file is for its user alone, also if it was there (needs POSIX files)', async () => {
  const modeOf = async (cwd: string) => {
    const { audit, path } = await open(undefined, cwd)
    audit.close()
    return statSync(path).mode & 0o777
  }
  expect(await modeOf(temporaryFolder())).toBe(ownerOnly)
  for (const [mode, left] of [
    [0o644, 0o600],
    [0o601, 0o600],
    [0o700, 0o700],
  ] as const) {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'a.ndjson'), '')
    chmodSync(join(cwd, 'a.ndjson'), mode)
    expect(await modeOf(cwd)).toBe(left)
  }
})

describe('a file that is no place for an audit is named', () => {
  test('a link (needs POSIX files)', async () => {
    const cwd = temporaryFolder()
    symlinkSync('elsewhere', join(cwd, 'a.ndjson'))
    await expect(open(undefined, cwd)).rejects.toMatchObject({
      kind: 'file',
      message: 'the audit file a.ndjson: it is a link',
    })
  })

  test('one in a folder that is not there', async () => {
    const cwd = join(temporaryFolder(), 'not', 'there')
    await expect(open(undefined, cwd)).rejects.toMatchObject({
      kind: 'file',
      message: expect.stringMatching(/^the audit file a\.ndjson: (?!it is)/),
    })
  })

  test('a folder', async () => {
    const cwd = temporaryFolder()
    mkdirSync(join(cwd, 'a.ndjson'))
    await expect(open(undefined, cwd)).rejects.toMatchObject({
      kind: 'file',
      message: expect.stringMatching(/^the audit file a\.ndjson: (?!it is a link)/),
    })
  })

  test('a device (needs POSIX files)', async () => {
    await expect(openIn(temporaryFolder(), '/dev/null')).rejects.toMatchObject({
      kind: 'file',
      message: 'the audit file /dev/null: it is not a regular file',
    })
  })
})

test('without a file nothing is kept, but the session is for this run alone', async () => {
  const cwd = temporaryFolder()
  const audit = await openIn(cwd, undefined)
  expect([...audit.earlier, audit.task, audit.interrupt]).toEqual(Array(2).fill(undefined))
  audit.add({ toolUse: null, event: 'interrupt' })
  expect(audit.interrupt).toBeUndefined()
  await expect(openIn(cwd, undefined, at)).rejects.toMatchObject({
    kind: 'file',
    details: { deadline: true },
  })
  audit.close()
  const next = await openIn(cwd, undefined, at)
  next.close()
})

test('after a failure its locks are free', async () => {
  const cwd = temporaryFolder()
  await expect(open('text\n', cwd)).rejects.toThrow('the audit file a.ndjson: it holds something else')
  const { audit } = await open('', cwd)
  audit.close()
  const again = await open('', cwd)
  again.audit.close()
})

const entriesOf = async (text: string) => {
  const chunks = (async function* () {
    yield Buffer.from(text)
  })()
  const found: string[] = []
  for await (const { entry } of readEntries(chunks, 'x')) found.push(String(entry.event))
  return found.join(' ')
}

const opening = '{"time":"2026-01-01T00:00:00.000Z","session":"'

test.each<[text: string, events: string]>([
  ['', ''],
  [line({ event: 'start' }), 'start'],
  [`${line({ event: 'start' })}\n\n\n${line({ event: 'end' })}\n`, 'start end'],
  [`${opening}\n${line({ event: 'end' })}`, 'end'],
  [`${opening}s1","eve\n`, ''],
  ['{\n', ''],
  ['{"time":"9\n', ''],
])('%j is an audit, with the events %s', async (text, events) => {
  expect(await entriesOf(text)).toBe(events)
})

test.each([
  '\n',
  `\n${line({ event: 'start' })}`,
  'text',
  '{}',
  '[]',
  'null',
  '5',
  `${line({ event: 'start' })}\ntext`,
  `${line({ event: 'start' })}\n{}`,
  line({ event: 'other' }),
  line({ event: 'constructor' }),
  line({ event: ['start'] }),
  line({ event: 'start', time: 5 }),
  line({ event: 'start', session: 5 }),
  `[${line({ event: 'start' })}]`,
  '{"time":"2026-01-01x',
  'x{"time":"',
  '{"when":"',
])('%j is something else', async (text) => {
  await expect(entriesOf(text)).rejects.toMatchObject({
    kind: 'file',
    message: 'x: it holds something else',
  })
})

test('every event of an audit is known', async () => {
  const all = 'decision start end sent accepted refused unknown answered-elsewhere not-asked interrupt done'
  const text = all.split(' ').map((event) => `${line({ event })}\n`)
  expect(await entriesOf(text.join(''))).toBe(all)
})
