import { expect, test } from 'vitest'
import { png } from '../gateway/image/image.ts'
import { rejected, run, temporaryFolder } from '../harness/run.ts'

const folder = () => temporaryFolder({ 'a.md': 'a', 'b.md': 'b', "it's.md": 'c', 'src/d': 'd' })

test.each([
  [['chat', '-f', 'a.md', 'b.md', 'Compare'], 'b.md'],
  [['chat', '-f', 'a.md', '--', "it's.md"], `'it'\\''s.md'`],
  [['events', 'send', '-s', 's', '-f', 'a.md', 'b.md', 'Compare'], 'b.md'],
])('parley exits with 2 if a word next to -f names a file: %j', async (argv, word) => {
  const err = `parley: ${word} is a file, but words are sent as text: -f ${word} adds the file. To send the name`
  expect(await run(argv, { cwd: folder() })).toMatchObject(rejected(2, err))
})

test.each([
  ['it names a file, but -f is not given', ['chat', 'Compare', 'b.md']],
  ['it names a folder', ['chat', '-f', 'a.md', 'src', 'Compare']],
  ['it names a missing file', ['chat', '-f', 'a.md', 'c.md', 'Compare']],
  ['it contains more than the name of a file', ['chat', '-f', 'a.md', 'Compare b.md']],
])('chat sends a word as text if %s', async (_, argv) => {
  expect(await run(argv, { cwd: folder() })).toMatchObject({ code: 0, err: '', requests: [{}] })
})

test('chat sends a word @FILE as text, with a note about -f only if the file exists', async () => {
  const ended = await run(['chat', 'Read', '@a.md'], { cwd: folder() })
  expect(ended).toMatchObject({ code: 0, err: 'parley: @a.md is sent as text; -f a.md adds the file\n' })
  expect(JSON.parse(ended.requests[0]?.text ?? '').contents[0].parts).toEqual([{ text: 'Read @a.md' }])
  expect((await run(['chat', 'Ask', '@alice', '@src'], { cwd: folder() })).err).toBe('')
})

test.each([
  [['chat', 'What is it?'], 'an image, audio, video or PDF file'],
  [['events', 'send', '-s', 's', 'What is it?'], 'an image or PDF file'],
])('parley exits with 2 and names -f - if stdin is an image: %j', async (argv, kinds) => {
  const advice = `stdin: not UTF-8 text on line 1: -f - adds ${kinds}; if it`
  expect(await run(argv, { stdin: png() })).toMatchObject(rejected(2, advice))
})
