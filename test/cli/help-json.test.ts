import { expect, test } from 'vitest'
import { rejected, run, temporaryFolder } from '../harness/run.ts'

interface Flag {
  flag: string
  short: string | null
  type: string
  values: string[] | null
  default: unknown
  repeatable: boolean
  setting: string | null
  environment: string | null
  shared: boolean
}

interface Level {
  command: string
  arguments: { name: string; required: boolean; repeatable: boolean; values: string[] | null }[]
  flags: Flag[]
  subcommands: { name: string; summary: string }[]
  exitCodes: { exit: number; kind: string }[]
  topics?: string[]
}

async function helpFor(...words: string[]): Promise<Level> {
  const { code, out, err } = await run(['help', ...words, '--json'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).not.toContain('{family}')
  return JSON.parse(out)
}

/** Returns every command without subcommands. */
async function listCommands(words: string[] = []): Promise<Level[]> {
  const page = await helpFor(...words)
  expect(page.command).toBe(words.join(' '))
  if (page.subcommands.length === 0) return [page]
  const inner = []
  for (const { name } of page.subcommands) inner.push(...(await listCommands([...words, name])))
  return inner
}

const flagOf = ({ flags }: Level, name: string) => flags.find(({ flag }) => flag === name)

test('help --json omits shared flags that a command refuses', async () => {
  const flags = (await helpFor('config', 'check')).flags.map(({ flag }) => flag)
  expect(flags).toContain('--verbose')
  expect(flags).not.toContain('--raw')
})

test('help --json has the commands, flags, values, defaults and exit codes of the help page', async () => {
  expect(await helpFor()).toMatchObject({ topics: expect.arrayContaining(['exit-codes']) })
  const chat = await helpFor('chat')
  expect(flagOf(chat, '--model')).toMatchObject({
    short: '-m',
    type: 'text',
    setting: 'chatModel',
    environment: 'PARLEY_CHAT_MODEL',
  })
  expect(flagOf(await helpFor('image'), '--model')).toMatchObject({
    setting: 'imageModel',
    environment: 'PARLEY_IMAGE_MODEL',
  })
  expect(flagOf(chat, '--file')).toMatchObject({ type: 'file', repeatable: true, shared: false })
  expect(flagOf(chat, '--header')).toMatchObject({ type: 'text', repeatable: true, shared: true })
  expect(flagOf(chat, '--timeout')).toMatchObject({ default: 600, environment: 'PARLEY_TIMEOUT' })
  expect(flagOf(chat, '--errors')).toMatchObject({
    type: 'choice',
    values: ['json', 'github'],
    repeatable: false,
  })
  expect(flagOf(chat, '--raw')).toMatchObject({ type: 'none', repeatable: false })
  const send = await helpFor('events', 'send')
  expect(flagOf(send, '--tool-result')).toMatchObject({ type: 'text', repeatable: true })
  expect(flagOf(send, '--system')).toMatchObject({ type: 'text', repeatable: false })
  expect(flagOf(await helpFor('events', 'list'), '--session')?.environment).toBe('PARLEY_SESSION')
  expect(chat.exitCodes).toContainEqual(expect.objectContaining({ exit: 6, kind: 'rate-limited' }))
})

test.each([
  ['chta', 'did you mean chat?'],
  ['events sned', 'did you mean send?'],
  ['batch', "unknown command 'batch': 'parley help batch' prints this topic as text"],
])('help --json exits with 2 for an unknown command: %s', async (words, expectedText) => {
  expect(await run(['help', '--json', ...words.split(' ')])).toMatchObject(rejected(2, expectedText))
})

test('a program can build a valid command line of every command from help --json alone', async () => {
  const commands = await listCommands()
  expect(commands.length).toBeGreaterThan(15)
  const cwd = temporaryFolder({ x: '{"rules":[],"default":{"decision":"deny"}}' })
  for (const command of commands) {
    const words = command.arguments.map(
      ({ name, values }) => values?.[0] ?? (name === 'key' ? 'timeout' : 'x'),
    )
    const flags = command.flags.filter(({ flag }) => ['--dry-run', '--no-stdin', '--errors'].includes(flag))
    const given = flags.flatMap(({ flag, type, values }) =>
      type === 'none' ? [flag] : `${flag}=${values?.[0]}`,
    )
    const variables = command.flags.filter(({ environment }) => environment === 'PARLEY_SESSION')
    const env = Object.fromEntries(variables.map(({ environment }) => [environment, 'sesn_1']))
    if (command.command === 'serve') given.push('--port=65536')
    const { code, err } = await run([...command.command.split(' '), ...given, ...words], {
      cwd,
      env,
      stdin: '',
    })
    // A run may fail because of a made-up value, but not because of the form of the command line.
    expect([0, 2, 3, 11], `${command.command}: ${err}`).toContain(code)
    expect(err, command.command).not.toMatch(/unknown flag|too many arguments|is missing|needs a value/)
  }
})
