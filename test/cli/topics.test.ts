import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exitCodes } from '../../src/errors.ts'
import { createMatcher } from '../../src/sessions/policy/pattern.ts'
import { blocksOf, helpOn } from './pages.ts'

test('help policy lists what the star of an allow stops at, as the code has it', async () => {
  const listed = (await blocksOf('policy')).find(({ text }) => /^[^\w\s]( [^\w\s])+\n$/.test(text))
  const star = createMatcher('*', 'narrow')
  const signs = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))
  expect(listed?.text.trim().split(' ').toSorted()).toEqual(signs.filter((sign) => !star(sign)))
  for (const text of ['a\nb', 'a\tb', '\u2028', '../x', 'a/..']) expect(star(text), text).toBe(false)
  for (const text of ['a b', 'a..b', 'x/y.z']) expect(star(text), text).toBe(true)
})

test('the rules of help policy say what is said of them', async () => {
  const [example = ''] = (await blocksOf('policy')).map(({ text }) => text)
  const { rules, default: fallback } = JSON.parse(example)
  expect(rules.map(({ decision }: { decision: string }) => decision)).toEqual(['allow', 'allow', 'deny'])
  expect(fallback).toEqual({ decision: 'deny', reason: 'not in CI' })
})

test('what help ci and the README try again is what the table says', async () => {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const table = (await helpOn('exit-codes')).matchAll(/^ {2}(\d+)(?:(?!\n {2}\S)[^[])*\[(?:yes|later)/gm)
  const later = [...table].map(([, exit]) => Number(exit))
  expect(later).toEqual([6, 7, 9, 10])
  const ci = await helpOn('ci')
  expect(ci).toContain('After 6, 7, 9 or 10')
  expect(ci).toContain(`exit_codes: [${later.join(', ')}]`)
  // A line whose answer was cut is 8.
  const ofBatch = [...later, exitCodes.response, exitCodes.stopped].sort((one, other) => one - other)
  expect(await helpOn('batch')).toContain(`exit_codes: [${ofBatch.join(', ')}]`)
  expect(readme).toContain(`  ${later.join(' | ')})`)
})
