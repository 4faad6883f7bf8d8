import { expect, test } from 'vitest'
import { createSchemaValidator } from '../../src/content/schema/validator.ts'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { createJsonSample } from '../../src/emulator/json-sample.ts'
import { realTimers } from '../../src/timers.ts'
import { run, temporaryFolder } from '../harness/run.ts'

const commands = ['chat', 'chat --stream', 'chat --stream --stream-via path']
test.each(commands)('serve --answer replaces the answer to %s, also in three parts', async (command) => {
  const exchange = createEmulator({ answer: 'One two three four five.' })
  for (const [prompt, tokens] of [
    ['Count', [undefined]],
    ['Count in 3 parts', [undefined, 'part-2-of-3', 'part-3-of-3']],
  ] as const) {
    const ended = await run([...command.split(' '), prompt], { exchange })
    expect(ended).toMatchObject({ code: 0, out: 'One two three four five.\n', err: '' })
    expect(ended.requests.map(({ text }) => JSON.parse(text).continuationToken)).toEqual(tokens)
  }
})

const bodies = ['{"prompt":"hi"}', '{"contents":[{"parts":[{"txt":"hi"}]}]}']
test.each(bodies)('the answer of the demo profile names the missing field of the body %s', async (stdin) => {
  const { out } = await run(['chat', '--profile', 'demo'], { stdin, exchange: 'network' })
  expect(out).toContain('The body has no text in contents[].parts[].text.')
})

const schemas: [string, object, unknown][] = [
  ['enum', { enum: ['pass', 'block'] }, 'pass'],
  ['const', { const: 5 }, 5],
  ['integer', { type: 'integer', minimum: 3 }, 3],
  ['boolean', { type: 'boolean' }, true],
  ['null', { type: 'null' }, null],
  ['a number with a maximum', { type: 'number', maximum: -2 }, -2],
  ['a long text', { type: 'string', minLength: 6 }, 'text..'],
  ['an array', { type: 'array', items: { type: 'integer' }, minItems: 2 }, [1, 1]],
  ['one of several types', { type: ['integer', 'null'] }, 1],
  ['a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'boolean' } } }, true],
  ['any of', { anyOf: [{ type: 'integer' }, { type: 'null' }] }, 1],
  [
    'an object',
    {
      type: 'object',
      required: ['verdict', 'why', '__proto__'],
      properties: { verdict: { enum: ['pass', 'block'] }, why: { type: 'string' }, more: {} },
    },
    JSON.parse('{"verdict":"pass","why":"text","__proto__":"text"}'),
  ],
]

test.each(schemas)('the emulator answers with JSON that matches the schema: %s', (_, schema, fitting) => {
  const text = createJsonSample(schema)
  expect(JSON.parse(text)).toEqual(fitting)
  expect(createSchemaValidator(structuredClone(schema)).validate(JSON.parse(text))).toEqual([])
})

test.each(['prompt', 'native'])('the emulator answers --schema-via %s with matching JSON', async (via) => {
  const cwd = temporaryFolder({ 's.json': '{"enum":["pass","block"]}' })
  const argv = ['chat', 'hello', '--schema', 's.json', '--schema-via', via]
  const exchange = createEmulator({})
  expect(await run(argv, { cwd, exchange, timers: realTimers })).toMatchObject({ code: 0, out: '"pass"\n' })
})

test('the emulated agent ends its task with JSON if the task has a schema', async () => {
  const schema = '{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}'
  const cwd = temporaryFolder({ 's.json': schema })
  const argv = ['events', 'run', 'hello', '-s', 's', '--no-stdin', '--schema', 's.json']
  const ended = await run(argv, { cwd, exchange: createEmulator({}), timers: realTimers })
  expect(ended).toMatchObject({ code: 0, out: '{"a":1}\n' })
})
