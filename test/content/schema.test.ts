import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSchemaValidator } from '../../src/content/schema/validator.ts'
import { realTimers, type Timers } from '../../src/timers.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { messageStop, textDelta } from '../faults/answers.ts'
import { createClock } from '../harness/clock.ts'
import { execute, start } from '../harness/process.ts'
import { answerInOrder } from '../harness/responses.ts'
import {
  answering,
  message,
  ownerOnlyMode,
  parseLines,
  readJson,
  readText,
  rejected,
  run as runFast,
  temporaryFolder,
} from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'

/**
 * Creates timers whose clock is stopped, because a check may take any time. `expire` ends the next time
 * limit.
 */
function createStoppedTimers(): Timers & { expire(): void } {
  let now = Date.now()
  let isDue = false
  return {
    ...realTimers,
    now: () => now,
    wait(milliseconds, signal) {
      if (!isDue || milliseconds > 10_000)
        return new Promise((end) => signal?.addEventListener('abort', () => end()))
      isDue = false
      now += milliseconds
      return realTimers.wait(1)
    },
    expire() {
      isDue = true
    },
  }
}

const run: typeof runFast = (argv, world) => runFast(argv, { timers: createStoppedTimers(), ...world })

const person = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
}

const argv = ['chat', 'Who?', '--schema', 's.json']

const folderWith = (schema: unknown) =>
  temporaryFolder({ 's.json': typeof schema === 'string' ? schema : JSON.stringify(schema) })

const ask = (answer: string, schema: unknown = person, ...flags: string[]) =>
  run([...argv, ...flags], { cwd: folderWith(schema), exchange: answering(message(answer)) })

const answers = (...texts: string[]) => answerInOrder(...texts.map((text) => message(text)))

const fitting = '{ "age": 36.0,\n "name": "Ad\\u0061" }'

test('--schema prints a matching answer exactly as the model wrote it, without blanks around it', async () => {
  expect(await ask(`\n  ${fitting}\r\n\n`)).toMatchObject({ code: 0, out: `${fitting}\n`, err: '' })
})

test('--schema sends the schema as a text part, or with --schema-via native as two fields', async () => {
  const [sent] = (await ask(fitting)).requests
  const body = JSON.parse(sent?.text ?? '')
  expect(Object.keys(body)).toEqual(['contents'])
  expect(body.contents).toHaveLength(1)
  expect(body.contents[0].parts[0]).toEqual({ text: 'Who?' })
  expect(body.contents[0].parts[1].text).toContain(JSON.stringify(person))
  const [native] = (await ask(fitting, person, '--schema-via', 'native')).requests
  expect(JSON.parse(native?.text ?? '')).toEqual({
    contents: [{ role: 'user', parts: [{ text: 'Who?' }] }],
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema: person },
  })
})

test.each([
  ['Ada is 36.', 'parley: the answer does not match s.json: it is not JSON: line 1, column 1: '],
  ['```json\n{"name"', 'parley: the answer does not match s.json: it is not JSON: '],
  ['{"name":"Ada","age":"36"}', 'the answer does not match s.json: $.age: type: must be integer, not "36"; '],
  ['{"name":"Ada","age":36,"n\\u0061me":"Eve"}', 's.json: the key "name" appears twice in one object; '],
])('--schema exits with 8 and prints nothing on stdout for the answer %j', async (text, said) => {
  expect(await ask(text)).toMatchObject({ code: 8, out: '', err: expect.stringContaining(said) })
})

test('--schema saves a mismatching answer with mode 0600 and prints its start', async () => {
  const TMPDIR = temporaryFolder()
  const text = `\nSure! Here is what you asked for:\n\n{"name": "Ada"}\n${'x'.repeat(5000)}\n`
  const world = { cwd: folderWith(person), env: { TMPDIR }, exchange: answering(message(text)) }
  const ended = await run(argv, world)
  expect(ended).toMatchObject({ code: 8, out: '' })
  const [name = '', ...others] = readdirSync(TMPDIR)
  expect([others, readText(TMPDIR, name)]).toEqual([[], text])
  expect(ended.err).toContain(`; the received data is saved as ${join(TMPDIR, name)}\n`)
  expect(ended.err).toContain('\n  the answer begins: Sure! Here is what you asked for: {"name": "Ada"} xxx')
  expect(statSync(join(TMPDIR, name)).mode & 0o777).toBe(ownerOnlyMode)
})

test('--schema saves only the last mismatching answer, and no empty answer', async () => {
  const TMPDIR = temporaryFolder()
  const world = { cwd: folderWith(person), env: { TMPDIR } }
  await run([...argv, '--schema-retries', '1'], { ...world, exchange: answers('no', 'nor this') })
  await run(argv, { ...world, exchange: answering(message(' \n')) })
  expect(readdirSync(TMPDIR).map((name) => readText(TMPDIR, name))).toEqual(['nor this'])
})

test('the message about a cut answer with --schema names the output limit before the mismatch', async () => {
  const exchange = answering(message('{"name":"A', { stop_reason: 'max_tokens' }))
  const ended = await run(argv, { cwd: folderWith(person), exchange })
  expect(ended).toMatchObject({ code: 8, out: '' })
  expect(ended.err).toMatch(
    /^parley: the answer was cut at the output limit .*; the answer does not match s\.json: it is not JSON/,
  )
})

test('--stream with --schema prints an answer only after its check, and saves a cut-off answer as FILE.part', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  const stream = (flags: string[], ...events: string[]) =>
    run([...argv, '--stream', ...flags], { cwd, exchange: answering(events, { headers }) })
  const cwd = folderWith({ type: 'array' })
  const whole = await stream([], textDelta('[1,'), textDelta('2]'), messageStop)
  expect(whole).toMatchObject({ code: 0, out: '[1,2]\n', err: '' })
  expect(await stream(['-o', 'a'], textDelta('[1,'))).toMatchObject({ code: 8, out: '' })
  expect(readText(cwd, 'a.part')).toBe('[1,')
})

test('--schema-retries sends the mismatches to the model as further turns', async () => {
  const cwd = folderWith(person)
  const askTwice = [...argv, '--schema-retries', '2', '--report', 'r.json']
  const ended = await run(askTwice, { cwd, exchange: answers('{"name":1,"age":1}', '1', fitting) })
  expect(ended).toMatchObject({ code: 0, out: `${fitting}\n` })
  expect(ended.err).toContain('$.name: type: must be string, not 1; requesting another answer\n')
  expect(ended.requests).toHaveLength(3)
  const { contents } = JSON.parse(ended.requests[2]?.text ?? '')
  const roles = contents.map(({ role }: { role: string }) => role)
  expect(roles).toEqual(['user', 'model', 'user', 'model', 'user'])
  expect(contents[1].parts).toEqual([{ text: '{"name":1,"age":1}' }])
  expect(contents[2].parts[0].text).toContain('$.name: type: ')
  expect(readJson(cwd, 'r.json')).toMatchObject({ attempts: 3, usage: { totalTokens: 24 } })
  const failing = { cwd, exchange: answers('1', '2', '3') }
  const failed = await run([...askTwice, '--errors', 'json', '--quiet'], failing)
  expect(failed).toMatchObject({ code: 8, out: '' })
  expect(JSON.parse(failed.err).error.attempts).toBe(3)
  expect(readJson(cwd, 'r.json').attempts).toBe(3)
})

test('--thread with --schema stores only the question and the matching answer', async () => {
  const cwd = folderWith(person)
  const askOnce = [...argv, '--schema-retries', '1', '--thread', 't.json']
  await run(askOnce, { cwd, exchange: answers('no', `\`\`\`json\n${fitting}\n\`\`\``) })
  expect(readJson(cwd, 't.json').contents).toEqual([
    { role: 'user', parts: [{ text: 'Who?' }] },
    { role: 'model', parts: [{ text: fitting }] },
  ])
  const before = readText(cwd, 't.json')
  expect((await run(askOnce, { cwd, exchange: answers('no', 'no') })).code).toBe(8)
  expect(readText(cwd, 't.json')).toBe(before)
})

const batch = ['chat', '--batch', '-', '--schema', 's.json', '--concurrency', '1']

test('a batch with --schema writes the JSON of a matching answer to the result, and otherwise the failure', async () => {
  const exchange = answers(`\`\`\`json\n${fitting}\n\`\`\``, '{}')
  const ended = await run(batch, { cwd: folderWith(person), stdin: '"a"\n"b"\n', exchange })
  expect(ended.code).toBe(8)
  const [first, second] = ended.out.trim().split('\n')
  expect(first).toContain(`"ok":true,"json":${fitting.replace('\n', '')},"model"`)
  expect(JSON.parse(second ?? '')).toMatchObject({ ok: false, error: { exit: 8, body: '{}' } })
})

const badType = /s\.json: \$\.type: enum: must be "array" or .*"strng"\n$/

test.each([
  ['not JSON', '{', 'not valid JSON: line 1, column 2'],
  ['an object with an unknown type', { type: 'strng' }, badType],
  ['too deep', `${'{"not":'.repeat(2000)}true${'}'.repeat(2000)}`, 'nested more than 1000 levels deep'],
])('--schema exits with 2 and sends nothing if the schema is %s', async (_, schema, said) => {
  expect(await ask(fitting, schema)).toMatchObject(rejected(2, said))
})

test('--schema exits with 9, not 2, if the deadline passes during the check of the schema', async () => {
  const world = { cwd: folderWith(person), timers: createClock() }
  const ended = await run([...argv, '--deadline', '5', '--errors', 'json'], world)
  expect(ended).toMatchObject({ code: 9, out: '', requests: [] })
  const message = 'the deadline passed while the schema was checked'
  expect(JSON.parse(ended.err).error).toMatchObject({ message, sent: 'no', retry: 'later', deadline: true })
})

const draft = (name: string) => `http://json-schema.org/${name}/schema#`
const unconstrained = '$: no keyword of JSON Schema constrains the answer; unknown keywords'
const isProto = 'a property must not be named __proto__'

test.each([
  ['an array as a subschema', { properties: { a: [] } }, '$.properties.a: type: '],
  ['draft-07 and a duplicate', { $schema: draft('draft-07'), enum: [1, 1] }, '$.enum: uniqueItems: '],
  ['a reference to another file', { $ref: 'other.json' }, '$ref: other.json is outside of the file'],
  ['draft-04', { $schema: draft('draft-04') }, 'is neither JSON Schema draft 2020-12 nor draft-07'],
  ['a reference to a URL', { items: { $ref: 'https://x/s' } }, '$ref: https://x/s is outside of the file'],
  ['a reference to a missing definition', { $ref: '#/$defs/a' }, '$ref: #/$defs/a leads to no schema'],
  ['a reference to itself', { $ref: '#' }, 'it refers to itself without end'],
  [
    'a dynamic reference to itself',
    { $dynamicRef: '#a', $dynamicAnchor: 'a' },
    'it refers to itself without',
  ],
  ['an invalid pattern', { items: { pattern: '(' } }, 'Invalid regular expression: /(/u: Unterminated group'],
  ['misspelled keywords only', { typ: 'object', requird: ['x'] }, `${unconstrained}: typ, requird`],
  ['the fields of a policy file', { rules: [{ tool: 'bash' }], default: {} }, `${unconstrained}: rules`],
  ['a property named __proto__', JSON.parse('{"properties":{"__proto__":{}}}'), isProto],
  ['a pattern named __proto__', JSON.parse('{"items":{"patternProperties":{"__proto__":{}}}}'), isProto],
])('--schema reports the problem of a schema with %s', (_, schema, said) => {
  expect(createSchemaValidator(schema).problems.join()).toContain(said)
})

/** Returns the mismatches of a text. The schema is copied, because validating changes it. */
const findMismatches = (schema: unknown, text: string): string[] =>
  createSchemaValidator(structuredClone(schema)).validate(JSON.parse(text))

const hundredths = { multipleOf: 0.01 }

test.each([
  [true, '5'],
  [{ title: 'any', $schema: 'https://json-schema.org/draft/2020-12/schema' }, '5'],
  [{ $defs: { a: { type: 'integer' } }, $ref: '#/$defs/a' }, '5'],
  [{ $id: 'https://x.test/s', $ref: 'b', $defs: { b: { $id: 'b', type: 'integer' } } }, '5'],
  [{ properties: { next: { $ref: '#' }, constructor: { type: 'string' } } }, '{"next":{"next":{}}}'],
  [{ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'integer' }] }, '[5,"a"]'],
  [{ $dynamicAnchor: 'node', properties: { next: { $dynamicRef: '#node' } } }, '{"next":{"next":{}}}'],
  [{ $async: true, id: 'a', nullable: true, discriminator: 5, properties: { n: hundredths } }, '{"n":1.15}'],
  [{ properties: { format: { format: 'email' }, $ref: true } }, '{"format":"no address","$ref":1}'],
])('--schema with the schema %j accepts the answer %s', (schema, text) => {
  expect(findMismatches(schema, text)).toEqual([])
})

test('--schema ignores keywords that only the validator library has, such as nullable', () => {
  expect(findMismatches({ type: 'string', nullable: true }, 'null')).toHaveLength(1)
  expect(findMismatches({ $async: true, type: 'string' }, '1')).toHaveLength(1)
})

test('--schema reports the mismatches of false, required, additionalProperties and anyOf', () => {
  expect(findMismatches(false, '1').join()).toContain('$: false: ')
  expect(findMismatches({ required: ['toString'] }, '{}')).toHaveLength(1)
  expect(findMismatches(person, '{"name":"Ada","age":36,"x y":1}')).toEqual([
    '$: additionalProperties: must not have the property "x y"',
  ])
  const textOrNull = { anyOf: [{ type: 'string' }, { type: 'null' }] }
  expect(findMismatches(textOrNull, '5').join()).toContain('$: anyOf: ')
})

const backtracking = { pattern: '^(a+)+$' }
const long = JSON.stringify(`${'a'.repeat(40)}!`)

/** Creates a world in which the time limit of the first answer's check expires. */
function expireFirstCheck(...texts: string[]) {
  const timers = createStoppedTimers()
  const next = answers(...texts)
  let count = 0
  const exchange: Exchange = (...call) => {
    if (++count === 1) timers.expire()
    return next(...call)
  }
  return { timers, exchange, cwd: folderWith(backtracking) }
}

test('--schema stops the check of an answer after 10 s or at the deadline', async () => {
  const late = await run(argv, expireFirstCheck(long))
  expect(late).toMatchObject({ code: 8, out: '' })
  expect(late.err).toContain('the check of the answer took longer than 10 s')
  const dead = await run([...argv, '--deadline', '9s'], expireFirstCheck(long))
  expect(dead.code).toBe(8)
  expect(dead.err).toContain('the deadline passed while the answer was checked')
})

test('a batch checks the next answer although the schema check of the previous answer took too long', async () => {
  const ended = await run(batch, { ...expireFirstCheck(long, '"aaa"'), stdin: '"a"\n"b"\n' })
  expect(parseLines(ended.out)).toMatchObject([
    { ok: false, error: { exit: 8 } },
    { ok: true, json: 'aaa' },
  ])
})

test('a signal ends parley at once while it checks an answer', async () => {
  const server = await serve((socket) => {
    socket.end(response(message(long)))
    // Waits until the check has started. Before the check, the signal would end the run too.
    setTimeout(() => child.kill('SIGTERM'), 500)
  })
  const cwd = folderWith(backtracking)
  const { child, ended } = start(argv, { cwd, env: envFor(server) })
  expect(await ended).toMatchObject({ signal: 'SIGTERM', out: '' })
  await server.close()
})

test('--schema of the built program checks the answer in a worker thread and then exits', async () => {
  const server = await serve((socket) => socket.end(response(message(fitting))))
  const world = { cwd: folderWith(person), env: envFor(server) }
  expect(await execute(argv, world)).toMatchObject({ code: 0, out: `${fitting}\n`, err: '' })
  await server.close()
})

test('--schema exits with 11 and sends nothing if the schema file is missing', async () => {
  expect(await run(['chat', 'hi', '--schema', 'nowhere'])).toMatchObject({ code: 11, requests: [] })
})

test('--dry-run shows the schema of --schema, and sends nothing', async () => {
  const preview = await ask(fitting, person, '--dry-run')
  expect(preview).toMatchObject({ code: 0, requests: [] })
  expect(preview.out).toContain('fits this JSON Schema')
})
