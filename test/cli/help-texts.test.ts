import { expect, test } from 'vitest'
import { topics } from '../../src/cli/topics.ts'
import { sendableEventTypes } from '../../src/wire/sessions/send-events.ts'
import { commandNames, commands, findExamples, groupNames, readCommandHelp, readHelp } from './pages.ts'

/** Fails if the text is too long or too wide, or has characters that some terminals do not show. */
function requireReadable(text: string, maxLines: number): void {
  const lines = text.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(maxLines)
  expect(lines.filter((line) => !/^[\x20-\x7e]{0,80}$/.test(line))).toEqual([])
}

test.each(['', ...groupNames, ...commandNames])(
  'parley %s --help is short, in ASCII and at most 80 columns wide',
  async (name) => {
    // events run has the most flags.
    requireReadable(await readCommandHelp(name), name === '' ? 27 : name === 'events run' ? 60 : 50)
  },
)

test('help event-types lists exactly the types that can be sent', async () => {
  const headings = [...(await readHelp('event-types')).matchAll(/^([\w.]+):$/gm)].map(([, type]) => type)
  expect(headings).toEqual([...sendableEventTypes, 'Rules'])
})

test.each(topics)('the topic %s is short, in ASCII and at most 80 columns wide', async (topic) => {
  requireReadable(await readHelp(topic), topic === 'batch' ? 150 : 110)
})

test.each(commandNames)('parley help %s shows flags, then examples, then shared flags', async (name) => {
  const text = await readHelp(name)
  const find = (heading: string) => text.indexOf(`\n${heading}:`)
  const [flags, examples, shared] = [find('Flags'), find('Examples'), find('Shared flags')]
  expect(flags).toBeGreaterThan(0)
  expect(examples).toBeGreaterThan(flags)
  expect(shared).toBeGreaterThan(examples)
  const { length } = text.slice(examples, shared).trim().split('\n').slice(1)
  expect(findExamples(text)).toHaveLength(length)
  expect(length).toBeGreaterThan(0)
  expect(length).toBeLessThan(5)
  const end = text.slice(shared).replace(/\s+/g, ' ')
  expect(end).toContain("'parley help settings'")
  const { requests } = commands.find(({ path }) => path.join(' ') === name)?.entry ?? {}
  const listed = ['--profile', '-q', ...(requests ? ['--raw', '--dry-run', '--curl', '-v'] : [])]
  for (const flag of listed) expect(end).toContain(` ${flag}`)
  expect(text).not.toMatch(/^ +(-\w, )?--(retry-unknown|stream-via|cacert|raw)\b/m)
})
