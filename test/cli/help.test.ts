import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { binary, execute, start } from '../harness/process.ts'
import { run, temporaryFolder } from '../harness/run.ts'

test.each([[], ['--help'], ['-h'], ['help']].map((argv) => [argv]))(
  '%j prints help on stdout, exit 0',
  async (argv) => {
    const ended = await run(argv)
    expect(ended).toMatchObject({ code: 0, err: '' })
    expect(ended.out).toMatch(/^Usage: parley <command>[\s\S]*\n {2}chat {2,}ask a model/)
  },
)

test('a bare group prints its help', async () => {
  expect((await run(['events'])).out).toMatch(/^Usage: parley events <command>[\s\S]*\n {2}send /)
  expect(await run(['config'])).toMatchObject({ code: 0, err: '' })
})

test('help on a command is the same in both spellings', async () => {
  const flag = await run(['events', 'send', '--help'])
  expect(flag.out).toContain('--interrupt-thread <id>')
  expect(await run(['help', 'events', 'send'])).toMatchObject({ code: 0, out: flag.out })
})

test.each([
  ['environment', 'PARLEY_ACCESS_TOKEN'],
  ['exit-codes', '6   rate-limited  429'],
  ['profiles', 'accessTokenCommand'],
  ['settings', 'streamVia'],
  ['input', 'while read'],
])('there is a topic: %s', async (topic, said) => {
  const ended = await run(['help', topic])
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toContain(said)
})

test('flags may stand before and after help', async () => {
  const { out } = await run(['chat', '--help'])
  for (const argv of [
    ['-q', 'help', 'chat'],
    ['help', '--color', 'never', 'chat'],
    ['help', 'chat', '-q'],
  ]) {
    expect(await run(argv)).toMatchObject({ code: 0, out, err: '' })
  }
  const topic = await run(['help', '--color', 'never', 'exit-codes'])
  expect(topic).toMatchObject({ code: 0, out: (await run(['help', 'exit-codes'])).out })
  expect((await run(['-q', 'help'])).out).toBe((await run([])).out)
})

test('help names the documented models, and the variables that are no settings', async () => {
  const { out } = await run(['chat', '--help'])
  expect(out).toContain('alpha-3-pro-preview')
  expect(out).toMatch(/first\s+word\s+is\s+the\s+setting\s+family/)
  expect((await run(['help', 'environment'])).out).toContain('PARLEY_SESSION')
})

test('help on what is not there is a usage error', async () => {
  expect(await run(['help', 'chatt'])).toMatchObject({ code: 2, out: '' })
  expect((await run(['help', 'chatt'])).err).toContain('did you mean chat?')
  expect(await run(['help', 'events', 'sendd'])).toMatchObject({ code: 2, out: '' })
})

test.each([
  [['--version']],
  [['-V']],
  [['-q', '-V']],
  [['-q', '--version']],
  [['--version', '--color', 'never']],
])('%j is the bare number', async (argv) => {
  expect((await run(argv)).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test.each([[['--version']], [['-q', '--version']], [['--help']]])(
  'a stdout that cannot be written is exit 11, one that is gone is an end: %j (needs /dev/full)',
  async (argv) => {
    const full = await execute(argv, { before: 'exec > /dev/full' })
    expect(full).toMatchObject({ code: 11, err: 'parley: stdout: no space left on the disk\n' })
    const { child, ended } = start(argv)
    child.stdout?.destroy()
    expect(await ended).toMatchObject({ code: 0, err: '' })
  },
)

test.concurrent.each(['--version', '--help', 'chat --nonsense', 'chat'])(
  'a signal ends a run whose last words meet a full pipe: %s (needs timeout)',
  async (argv) => {
    // A run that survives SIGTERM for 2 s is killed, which is 137. Only then is the pipe read.
    const shell = `(head -c 65536 /dev/zero
      timeout -k 2 1 "$0" "$1" ${argv} < <(exec 2> /dev/null; exec sleep 4); echo $? > code
    ) 2>&1 | (until [ -e code ]; do sleep 0.1; done; cat > all)`
    const cwd = temporaryFolder()
    const env = { ...childEnvironment, HOME: cwd }
    await promisify(execFile)('bash', ['-c', shell, process.execPath, binary], { cwd, env })
    expect(readFileSync(`${cwd}/code`, 'utf8')).toBe('124\n')
  },
)
