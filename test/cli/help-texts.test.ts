import { expect, test } from 'vitest'
import { topics } from '../../src/cli/topics.ts'
import { sendableEventTypes } from '../../src/wire/sessions/event-types.ts'
import { run } from '../harness/run.ts'
import { commands, examplesOf, groups, helpOn, helpOnCommand, names } from './pages.ts'

test.each(['', ...groups, ...names])('help on "%s" fits on one screen', async (name) => {
  const lines = (await helpOnCommand(name)).trimEnd().split('\n')
  // events run has the most flags.
  const maxLines = name === '' ? 27 : name === 'events run' ? 60 : 50
  expect(lines.length).toBeLessThanOrEqual(maxLines)
  expect(lines.filter((line) => line.length > 80)).toEqual([])
})

test('help event-types lists exactly the types that can be sent', async () => {
  const headings = [...(await helpOn('event-types')).matchAll(/^([\w.]+):$/gm)].map(([, type]) => type)
  expect(headings).toEqual([...sendableEventTypes, 'Rules'])
})

test.each(topics)('the topic %s is short and at most 80 columns wide', async (topic) => {
  const lines = (await helpOn(topic)).trimEnd().split('\n')
  expect(lines.filter((line) => line.length > 80)).toEqual([])
  const maxLines: Partial<Record<typeof topic, number>> = { batch: 150 }
  expect(lines.length).toBeLessThanOrEqual(maxLines[topic] ?? 110)
})

test.each(['', ...groups, ...names, ...topics])(
  'the help on "%s" is ASCII, which every terminal shows',
  async (name) => {
    expect(await helpOn(name)).toMatch(/^[\n\x20-\x7e]*$/)
  },
)

test.each(names)('help on "%s" shows flags, then examples, then where the shared flags are', async (name) => {
  const text = await helpOn(name)
  const [flags, examples, shared] = ['\nFlags:', '\nExamples:', '\nShared flags: '].map((heading) =>
    text.indexOf(heading),
  )
  expect(flags).toBeGreaterThan(0)
  expect(examples).toBeGreaterThan(flags as number)
  expect(shared).toBeGreaterThan(examples as number)
  const { length } = text.slice(examples, shared).trim().split('\n').slice(1)
  expect(examplesOf(text)).toHaveLength(length)
  expect(length).toBeGreaterThan(0)
  expect(length).toBeLessThan(5)
  const end = text.slice(shared).replace(/\s+/g, ' ')
  expect(end).toContain("'parley help settings'")
  const { requests } = commands.find(({ path }) => path.join(' ') === name)?.entry ?? {}
  for (const flag of ['--profile', '-q', ...(requests ? ['--raw', '--dry-run', '--curl', '-v'] : [])])
    expect(end).toContain(` ${flag}`)
  expect(text).not.toMatch(/^ +(-\w, )?--(retry-unknown|stream-via|cacert|raw)\b/m)
})

test.each([
  ['init', "'parley config init'"],
  ['list', "'parley events list' or 'parley sessions list' or 'parley config list'"],
  ['models', "'parley config set chatModel NAME'"],
  ['config edit', "'parley config path'"],
  ['help exitcodes', '(did you mean exit-codes?)'],
  ['help list', "'parley help events list'"],
  ['chat hi --timeot 3', '(did you mean --timeout?)'],
])('parley %s exits with 2 and one line that names the right help', async (line, expectedText) => {
  const ended = await run(line.split(' '))
  expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  expect(ended.err).toContain(expectedText)
  expect(ended.err.trimEnd()).not.toContain('\n')
})

test('the message for a misspelled flag does not show its value', async () => {
  expect((await run(['chat', 'hi', '--tokn=canary'])).err).not.toContain('canary')
})
