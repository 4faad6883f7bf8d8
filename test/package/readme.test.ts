import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { topics } from '../../src/cli/topics.ts'
import { exitCodes } from '../../src/errors.ts'
import { run } from '../harness/run.ts'

const path = join(import.meta.dirname, '../../README.md')
const readme = readFileSync(path, 'utf8')

test('help exit-codes lists each exit code with its kind, and README.md lists each exit code but 1, the code of a bug', async () => {
  const { out } = await run(['help', 'exit-codes'])
  const rows = [...out.matchAll(/^ {2}(\d+) +(\S+) /gm)].map(([, exit, kind]) => `${exit} ${kind}`)
  expect(rows).toEqual(Object.entries(exitCodes).map(([kind, exit]) => `${exit} ${kind}`))
  const codes = [...readme.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, list = '']) =>
    list.split(', ').map(Number),
  )
  const { unexpected, ...others } = exitCodes
  expect(codes.toSorted((a, b) => a - b)).toEqual(Object.values(others))
})

test('README.md has at most 140 lines', () => {
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(140)
})

test('README.md names every help topic', () => {
  const more = readme.slice(readme.indexOf('## What else'))
  for (const topic of topics) expect(more).toContain(`\`${topic}\``)
})

/** Indented blocks of the page. */
const blocks = [...readme.matchAll(/(?<=\n\n)( {4}.*\n)+/g)].map(([block]) => block.replace(/^ {4}/gm, ''))

test('README.md shows the prompts of config init', async () => {
  const shown = blocks.find((block) => block.startsWith('$ parley config init')) ?? ''
  const lines = shown.trimEnd().split('\n').slice(1)
  const typed = 'https://gateway.example\ntoken-0123456789\n\n\n\n\nn\n'
  const { code, err } = await run(['config', 'init'], { typed, tty: ['stderr'], columns: 120 })
  expect(code, err).toBe(0)
  const parts = lines.filter((line) => line !== '…').map((line) => line.replace(/(?<=^ *baseUrl: ).*/, ''))
  expect(parts.length).toBeGreaterThan(3)
  for (const part of parts) expect(err).toContain(part)
})

test('the command in README.md creates a session', async () => {
  const command = blocks.find((block) => block.startsWith('parley sessions create ')) ?? ''
  const { code, out } = await run(command.trim().split(' ').slice(1))
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^sesn_\w+\n$/) })
})
