import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exitCodes } from '../../src/errors.ts'
import { createPatternMatcher } from '../../src/sessions/policy/pattern.ts'
import { readHelp, readTopicBlocks } from './pages.ts'

test('help policy lists exactly the characters that * of an allow rule does not match', async () => {
  const list = (await readTopicBlocks('policy')).find(({ text }) => /^[^\w\s]( [^\w\s])+\n$/.test(text))
  const matchesStar = createPatternMatcher('*', 'narrow')
  const characters = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))
  expect(list?.text.trim().split(' ').toSorted()).toEqual(characters.filter((sign) => !matchesStar(sign)))
  for (const text of ['a\nb', 'a\tb', '\u2028', '../x', 'a/..']) expect(matchesStar(text), text).toBe(false)
  for (const text of ['a b', 'a..b', 'x/y.z']) expect(matchesStar(text), text).toBe(true)
})

test('the scripts in help ci, gitlab, kubernetes and README.md retry the exit codes that help exit-codes marks as "later"', async () => {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const table = (await readHelp('exit-codes')).matchAll(/^ {2}(\d+)(?:(?!\n {2}\S)[^[])*\[later/gm)
  const later = [...table].map(([, exit]) => Number(exit))
  expect(later).toEqual([6, 7, 9, 10])
  expect(await readHelp('ci')).toContain('After 6, 7, 9 or 10')
  // Exit code 8 may be an answer that broke off, so the GitLab job retries exit code 8, too.
  const ofStep = [...later, exitCodes.response].sort((one, other) => one - other)
  const lists = [ofStep, [...ofStep, exitCodes.stopped]].map((codes) => `exit_codes: [${codes.join(', ')}]`)
  expect((await readHelp('gitlab')).match(/exit_codes: .*/g)).toEqual(lists)
  expect(readme).toContain(`  ${later.join(' | ')})`)
  // The other codes of a batch without limits need a person, so the Kubernetes Job does not repeat them.
  const others = Object.values(exitCodes).filter((code) => code <= exitCodes.file && !ofStep.includes(code))
  expect(await readHelp('kubernetes')).toContain(`values: [${others.join(', ')}]`)
})
