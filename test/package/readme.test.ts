import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { topics } from '../../src/cli/topics.ts'
import { exitCodes } from '../../src/errors.ts'
import { run } from '../harness/run.ts'

const path = join(import.meta.dirname, '../../README.md')
const readme = readFileSync(path, 'utf8')

test("the README's table of exit codes is that of help", async () => {
  const { out } = await run(['help', 'exit-codes'])
  const rows = out.replace(/\n {9,}/g, ' ').matchAll(/^ {2}(\d+) +(\S+) +(.*?)(?: \[(.*)\])?$/gm)
  const told = [...rows].map(
    ([, exit, kind, when, again = '']) => `| ${exit} | ${kind} | ${when} | ${again} |`,
  )
  expect(told).toHaveLength(Object.keys(exitCodes).length)
  for (const line of told) expect(readme.replaceAll('`', '')).toContain(`\n${line}\n`)
  const codes = Object.entries(exitCodes).map(([kind, exit]) => `| ${exit} | ${kind} |`)
  expect(told.map((line) => /^.*?\|.*?\|.*?\|/.exec(line)?.[0])).toEqual(codes)
})

test('the README is read in a few minutes', () => {
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(160)
})

test('the README names every topic of help', () => {
  const more = readme.slice(readme.indexOf('## More'))
  for (const topic of topics) expect(more).toContain(`\`${topic}\``)
})

/** The indented blocks of the page. */
const blocks = [...readme.matchAll(/(?<=\n\n)( {4}.*\n)+/g)].map(([block]) => block.replace(/^ {4}/gm, ''))

test('what the README shows of config init is what it asks', async () => {
  const shown = blocks.find((block) => block.startsWith('$ parley config init')) ?? ''
  const lines = shown.trimEnd().split('\n').slice(1)
  const typed = ['https://gateway.example', 'token-0123456789', '', '', '', '', 'n'].map(
    (line) => `${line}\n`,
  )
  const { code, err } = await run(['config', 'init'], {
    typed: typed.join(''),
    tty: ['stderr'],
    columns: 120,
  })
  expect(code, err).toBe(0)
  const parts = lines.filter((line) => line !== '…').map((line) => line.replace(/(?<=^ *baseUrl: ).*/, ''))
  expect(parts.length).toBeGreaterThan(3)
  for (const part of parts) expect(err).toContain(part)
})

test('the README shows how a session is created', async () => {
  const command = blocks.find((block) => block.startsWith('parley sessions create ')) ?? ''
  const { code, out } = await run(command.trim().split(' ').slice(1))
  expect(code).toBe(0)
  expect(out).toMatch(/^sesn_\w+\n$/)
})
