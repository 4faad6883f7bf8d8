import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { type FormatName, formatNames, listFields, requireFormats } from '../harness/formats.ts'
import { answering, message, readJson, run, temporaryFolder } from '../harness/run.ts'
import { readTopicBlocks } from './pages.ts'

/** Fields of release 0.1.0, which must remain until 1.0.0. */
const releasedFields: Record<FormatName, string> = {
  failure:
    'format kind exit status message retryAfter requestId sent safeToRetry retry deadline attempts pending resume body',
  report:
    'format version command exit kind retry deadline sent id model stopReason usage seconds attempts requestId session files cost sessionUsage sessionCost resume counts',
  line: 'index id hash ok text files json response model stopReason usage attempts seconds error',
  audit: 'time session toolUse type server name input event decision by rule reason',
}

test.each(Object.entries(releasedFields) as [FormatName, string][])(
  'the format "%s" keeps every field of release 0.1.0',
  (name, fields) => {
    expect(listFields(name)).toEqual(expect.arrayContaining(fields.split(' ')))
  },
)

test('help formats names every field of each format and no other field', async () => {
  const lists = (await readTopicBlocks('formats')).map(({ text }) => text.match(/^\w+/gm))
  expect(lists).toEqual(formatNames.map(listFields))
})

test.each<[string, string[], object]>([
  ['a failure', ['chat', 'hi'], { exchange: answering('{"error":{"message":"no"}}', { status: 400 }) }],
  ['a usage error', ['chat', 'hi', '--nonsense'], {}],
  ['an answer', ['chat', 'hi'], { exchange: answering(message('Hi')) }],
  ['a batch', ['chat', '--batch', '-'], { stdin: '"a"\n"b"\n' }],
  [
    'a batch that fails',
    ['chat', '--batch', '-'],
    { stdin: '"a"\n', exchange: answering('{}', { status: 400 }) },
  ],
  ['a run', ['events', 'run', 'use a {}', '-s', 's', '--no-stdin', '--policy', 'p', '--audit', 'a'], {}],
  ['a run that waits', ['events', 'run', 'use a {}', '-s', 's', '--no-stdin', '--audit', 'a'], {}],
])('the output of %s has the fields that "parley help formats" documents', async (_, argv, world) => {
  const cwd = temporaryFolder({ p: '{"rules":[],"default":{"decision":"deny"}}' })
  const line = [...argv, '--errors', 'json', '--report', 'r']
  const ended = await run(line, { cwd, exchange: createEmulator({}), ...world })
  requireFormats(line, { ...ended, cwd })
  const hasReport = ended.code !== 2
  if (hasReport) expect(readJson(cwd, 'r').exit).toBe(ended.code)
})
