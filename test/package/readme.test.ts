import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { topics } from '../../src/cli/topics.ts'
import { outcomes } from '../../src/errors.ts'

const path = join(import.meta.dirname, '../../README.md')
const readme = readFileSync(path, 'utf8')

const rows = [
  '| exit | kind | when | run it again? |',
  '|---|---|---|---|',
  '| 0 | | done | |',
  ...Object.entries(outcomes).map(
    ([kind, { exit, when, again }]) => `| ${exit} | ${kind} | ${when} | ${again} |`,
  ),
]

test("the README's table is the program's: vitest run test/package/readme -u writes it", async () => {
  const section = `<!-- exit codes -->\n${rows.join('\n')}\n<!-- /exit codes -->`
  const whole = readme.replace(/<!-- exit codes -->.*<!-- \/exit codes -->/s, () => section)
  expect(whole).toContain(section)
  await expect(whole).toMatchFileSnapshot(path)
})

test('the README is read in a few minutes', () => {
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(160)
})

test('the README names every topic of help', () => {
  const more = readme.slice(readme.indexOf('## More'))
  for (const topic of topics) expect(more).toContain(`\`${topic}\``)
})
