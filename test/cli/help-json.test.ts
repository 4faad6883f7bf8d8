import { expect, test } from 'vitest'
import { rejected, run, temporaryFolder } from '../harness/run.ts'
import { commandNames } from './pages.ts'

type Flag = Record<'flag' | 'type' | 'environment', string> & { values: string[] | null }
type Argument = { name: string; values: string[] | null }

async function helpFor(command: string) {
  const { code, out, err } = await run(['help', ...command.split(' ').filter(Boolean), '--json'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const page = JSON.parse(out)
  expect(page.command).toBe(command)
  return page as { arguments: Argument[]; flags: Flag[] } & Record<string, unknown[]>
}

test.each([
  ['chat', '--model', { short: '-m', type: 'text', setting: 'chatModel', environment: 'PARLEY_CHAT_MODEL' }],
  ['image', '--model', { setting: 'imageModel', environment: 'PARLEY_IMAGE_MODEL' }],
  ['chat', '--file', { type: 'file', repeatable: true, shared: false }],
  ['chat', '--header', { type: 'text', repeatable: true, shared: true }],
  ['chat', '--timeout', { default: 600, environment: 'PARLEY_TIMEOUT' }],
  ['chat', '--errors', { type: 'choice', values: ['json', 'github'], repeatable: false }],
  ['chat', '--raw', { type: 'none', repeatable: false }],
  ['sessions list', '--status', { type: 'choice', repeatable: true }],
  ['events list', '--type', { type: 'text', repeatable: true }],
  ['events send', '--system', { type: 'text', repeatable: false }],
  ['events list', '--session', { environment: 'PARLEY_SESSION' }],
])('help %s --json describes the flag %s', async (command, flag, fields) => {
  expect((await helpFor(command)).flags).toContainEqual(expect.objectContaining({ flag, ...fields }))
})

test('help --json lists the topics and exit codes', async () => {
  const { topics, exitCodes } = await helpFor('')
  expect(topics).toContain('exit-codes')
  expect(exitCodes).toContainEqual({ exit: 6, kind: 'rate-limited', when: expect.stringMatching(/^429/) })
})

test.each([
  ['chta', 'did you mean chat?'],
  ['events sned', 'did you mean send?'],
  ['batch', "unknown command 'batch': 'parley help batch' prints this topic as text"],
])('help --json exits with 2 for an unknown command: %s', async (words, expectedText) => {
  expect(await run(['help', '--json', ...words.split(' ')])).toMatchObject(rejected(2, expectedText))
})

test.each(commandNames)('help --json suffices to build a valid command line of %s', async (command) => {
  const cwd = temporaryFolder({ x: '{"rules":[],"default":{"decision":"deny"}}' })
  const page = await helpFor(command)
  const words = page.arguments.map(({ name, values }) => values?.[0] ?? (name === 'key' ? 'timeout' : 'x'))
  const flags = page.flags
    .filter(({ flag }) => ['--dry-run', '--no-stdin', '--errors'].includes(flag))
    .map(({ flag, type, values }) => (type === 'none' ? flag : `${flag}=${values?.[0]}`))
  if (command === 'serve') flags.push('--port=65536')
  const isSession = page.flags.some(({ environment }) => environment === 'PARLEY_SESSION')
  const world = { cwd, env: isSession ? { PARLEY_SESSION: 'sesn_1' } : {}, stdin: '' }
  const { code, err } = await run([...command.split(' '), ...flags, ...words], world)
  // A run may fail because of a made-up value, but not because of the form of the command line.
  expect([0, 2, 3, 11], err).toContain(code)
  expect(err).not.toMatch(/unknown flag|too many arguments|is missing|needs a value/)
})
