import { readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { rejected, run, temporaryFolder } from '../harness/run.ts'

const partsOf = (ended: Awaited<ReturnType<typeof run>>) =>
  JSON.parse(ended.requests[0]?.text ?? '{}').contents?.at(-1).parts

test('chat sends stdin unchanged as the prompt if there are no words', async () => {
  const text = ' two\r\nlines\u0000 and no end'
  const stdin = ['\ufeff', text.slice(0, 5), text.slice(5)]
  expect(partsOf(await run(['chat'], { stdin }))).toEqual([{ text }])
})

test('chat sends the words and the piped text as two parts of one turn', async () => {
  const both = await run(['chat', 'Review', 'this'], { stdin: 'diff\n' })
  expect(partsOf(both)).toEqual([{ text: 'Review this' }, { text: 'diff\n' }])
  expect(partsOf(await run(['chat', 'Hi'], { stdin: '' }))).toEqual([{ text: 'Hi' }])
})

test('chat replaces the word - by the text on stdin', async () => {
  const ended = await run(['chat', 'Translate', '-', 'please'], { stdin: 'hello\n' })
  expect(partsOf(ended)).toEqual([{ text: 'Translate hello please' }])
  expect(partsOf(await run(['chat', '-'], { stdin: ' two \n\n\r\n' }))).toEqual([{ text: ' two \n\n' }])
})

test('chat takes words after -- as the prompt, even if they start with a hyphen', async () => {
  expect(partsOf(await run(['chat', '--', '-5 + 3', '--raw']))).toEqual([{ text: '-5 + 3 --raw' }])
})

test.each([
  ['the word - of the prompt', ['chat', '-']],
  ['-i -', ['chat', '-i', '-']],
  ['-f -', ['chat', 'x', '-f', '-']],
  ['--batch -', ['chat', '--batch', '-', '--results', 'r.ndjson']],
  ['--message @-', ['events', 'send', '-s', 's', '--message', '@-']],
])('P03: parley exits with 2 and reads nothing if %s would read from a terminal', async (reader, argv) => {
  const cwd = temporaryFolder()
  const err = `parley: ${reader} reads stdin, which is a terminal: use a pipe or < FILE\n`
  expect(await run(argv, { cwd, typed: 'Hi' })).toMatchObject({ code: 2, out: '', err, requests: [] })
  expect(readdirSync(cwd)).toEqual([])
})

const cwd = temporaryFolder({ 'rules.json': '{"rules":[]}' })

test.each([
  ['the words of chat', ['chat', 'Review']],
  ['the words of events send', ['events', 'send', '-s', 'sesn_1', 'Go on']],
  ['the words of events run', ['events', 'run', '-s', 'sesn_1', 'Go on', '--policy', 'rules.json']],
])('P61: parley sends only %s if stdin is empty, or exits with 2 with --fail-on-empty', async (_, argv) => {
  const alone = await run([...argv, '--dry-run'], { cwd })
  for (const stdin of ['', ' \n\t\r\n']) {
    const ended = await run([...argv, '--dry-run'], { cwd, stdin })
    expect(ended).toMatchObject({ code: 0, out: alone.out, err: 'parley: stdin is empty\n' })
    const failed = await run([...argv, '--fail-on-empty'], { cwd, stdin })
    const err = 'parley: stdin is empty (--fail-on-empty)\n'
    expect(failed).toMatchObject({ code: 2, out: '', requests: [], err })
  }
  const { code, out } = await run([...argv, '--fail-on-empty', '--dry-run'], { cwd, stdin: 'a diff' })
  expect([code, out]).toEqual([0, expect.stringContaining('a diff')])
})

test('events run without words prints a note if stdin is empty', async () => {
  const { err } = await run(['events', 'run', '-s', 'sesn_1'], { stdin: '' })
  expect(err).toContain('parley: stdin is empty\n')
})

test('P61: --fail-on-empty accepts a terminal as stdin', async () => {
  expect(await run(['chat', 'Hi', '--fail-on-empty'])).toMatchObject({ code: 0, err: '' })
})

describe('parley rejects input that is not UTF-8', () => {
  const cwd = temporaryFolder({ 'latin1.txt': Buffer.from('One\ncaf\xe9\n', 'latin1') })
  const latin1 = 'not UTF-8 text on line 2: if it is text, iconv -f latin1 -t utf-8 converts it'

  test.each([
    ['-f', ['chat', 'x', '-f', 'latin1.txt'], `latin1.txt: ${latin1}`],
    ['@FILE', ['events', 'send', '-s', 's', '--message', '@latin1.txt'], `@latin1.txt: ${latin1}`],
  ])('P08: parley names the line that is not UTF-8 and suggests iconv: %s', async (_, argv, expectedText) => {
    const rejection = { code: 2, out: '', err: `parley: ${expectedText}\n`, requests: [] }
    expect(await run(argv, { cwd })).toMatchObject(rejection)
  })

  test.each([
    ['a gzip file for -f', ['chat', 'x', '-f', 'a.gz'], 'audio, video or PDF file: it is application/gzip'],
    ['a gzip body of api', ['api', 'gateway', '/x', '-i', 'a.gz'], 'a.gz: not UTF-8 text on line 1'],
  ])('P63: parley exits with 2 for binary input: %s', async (_, argv, expectedText) => {
    writeFileSync(join(cwd, 'a.gz'), gzipSync('text'))
    expect(await run(argv, { cwd })).toMatchObject(rejected(2, expectedText))
  })
})

const body =
  '{ "contents": [ {"role":"user", "parts":[{"text":"a","z":1}]} ], "n": 1.10, "big": 12345678901234567890 }'

test('chat sends a body from stdin or -i byte for byte', async () => {
  const cwd = temporaryFolder({ 'b.json': `\ufeff${body}` })
  expect((await run(['chat'], { stdin: body })).requests[0]?.text).toBe(body)
  expect((await run(['chat', '-i', 'b.json'], { cwd })).requests[0]?.text).toBe(body)
  expect((await run(['chat', '-i', '-'], { stdin: body })).requests[0]?.text).toBe(body)
})

test('chat adds words, then the fields of flags, then --set to a body, and keeps the rest byte for byte', async () => {
  const cwd = temporaryFolder({ 'b.json': body })
  const flags = '-i b.json --max-output-tokens 5 --set contents[0].parts[0].z=2.0'
  const { requests } = await run(['chat', 'more', ...flags.split(' ')], { cwd })
  expect(requests[0]?.text).toContain('"n": 1.10, "big": 12345678901234567890')
  expect(requests[0]?.text).toContain('"z":2.0')
  expect(JSON.parse(requests[0]?.text ?? '')).toMatchObject({
    contents: [{ parts: [{ text: 'a' }] }, { role: 'user', parts: [{ text: 'more' }] }],
    generationConfig: { maxOutputTokens: 5 },
  })
})

const demo = ['chat', 'x', '--profile', 'demo', '--base-url', 'https://a.test']
test.each<[name: string, argv: string[], stdin: string | undefined, expectedText: string]>([
  ['a truncated body', ['chat'], '{"contents": [', 'stdin: not valid JSON: line 1, column 15'],
  ['a body with a wrong type', ['chat'], '{"contents":[{"role":5}]}', 'contents[0].role: must be text'],
  ['an array as a body', ['chat', '-i', '-', '--set', 'x=1'], '[0]', 'stdin: must be an object'],
  ['a blank prompt', ['chat', ' '], undefined, 'the prompt is empty'],
  ['a prompt like a body', ['chat'], '{hello} x', "; to send text, give it as words, or '-' for stdin"],
  ['a file of a tebibyte', ['chat', 'x', '-f', 'huge'], undefined, 'huge: longer than 512 MiB, the most'],
  ['a thread and a body', ['chat', '--thread', 't.json', '-i', 'b.json'], undefined, 'both give a body'],
  ['a base URL for the demo', demo, undefined, '--base-url: cannot be used with the demo profile, which'],
  ['--curl with --dry-run', ['chat', 'x', '--curl', '--dry-run'], undefined, 'exclude each other'],
  ['a flag of another command', ['--raw', 'config', 'path'], undefined, "--raw does not apply to 'path'"],
  ['an empty model name', ['chat', 'x', '--model='], undefined, 'the model must not be'],
  ['a framing header', ['chat', 'x', '-H', 'Expect: 100-continue'], undefined, 'cannot be set'],
])('parley exits with 2 and prints one error line for %s', async (_, argv, stdin, expectedText) => {
  const cwd = temporaryFolder({ 'b.json': '{"contents": [{"role": "user"', huge: '' })
  truncateSync(join(cwd, 'huge'), 2 ** 40)
  const ended = await run(argv, { cwd, ...(stdin === undefined ? {} : { stdin }) })
  expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  expect(ended.err).toContain(expectedText)
  expect(ended.err).toMatch(/^parley: [^\n]+\n( {2}[^\n]+\n)*$/)
})

test.each([
  ['a prompt', ['hello']],
  ['a system prompt', ['--system', 's']],
])('chat does not add %s to a body with messages, which is for another endpoint', async (_, flags) => {
  const stdin = '{"messages":[{"role":"user","content":"a"}]}'
  const err = "'parley api gateway /v1/message' sends such a body"
  expect(await run(['chat', '-i', '-', ...flags], { stdin })).toMatchObject(rejected(2, err))
})
