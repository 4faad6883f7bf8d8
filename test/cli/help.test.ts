import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { binary, execute, start } from '../harness/process.ts'
import { run, temporaryFolder } from '../harness/run.ts'

test.each(['', '--help', '-h', '--help -q', 'help', '-q help'])('parley %s prints help', async (line) => {
  const ended = await run(line.split(' ').filter(Boolean))
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.out).toMatch(/^Usage: parley <command>[\s\S]*\n {2}chat {2,}ask a model/)
})

test.each([
  ...['events', 'events --profile demo', '-q events', 'events --errors json', 'events --no-pager'].map(
    (line) => [line, 'events --help', '<command>'] as const,
  ),
  ['sessions --profile demo', 'sessions --help', '<command>'],
  ['help events send', 'events send --help', '[flags] [message...]'],
  ['-h events send', 'events send --help', '[flags] [message...]'],
  ['--help chat', 'chat --help', '[flags] [prompt...]'],
  ['chat --help events', 'chat --help', '[flags] [prompt...]'],
  ['chat --nonsense --help', 'chat --help', '[flags] [prompt...]'],
  ['-q help chat', 'chat --help', '[flags] [prompt...]'],
  ['help --color never chat', 'chat --help', '[flags] [prompt...]'],
  ['help chat -q', 'chat --help', '[flags] [prompt...]'],
] as const)('parley %s prints the same help as parley %s', async (line, same, usage) => {
  const { out } = await run(same.split(' '))
  expect(out).toContain(`Usage: parley ${same.replace(' --help', '')} ${usage}`)
  expect(await run(line.split(' '))).toMatchObject({ code: 0, out, err: '' })
})

test('chat --help names the documented models and the setting "family"', async () => {
  const { out } = await run(['chat', '--help'])
  expect(out).toContain('alpha-3-pro-preview')
  expect(out).toMatch(/start\s+with\s+the\s+value\s+of\s+the\s+setting\s+"family"/)
})

const versions = [
  '--version',
  '-V',
  '-q -V',
  '-q --version',
  '--version --color never',
  '--version --nonsense',
]
test.each(versions)('parley %s prints only the version number', async (line) => {
  expect((await run(line.split(' '))).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test.each(['--version', '--help'])('parley %s fails on a full disk (needs /dev/full)', async (flag) => {
  const full = await execute([flag], { before: 'exec > /dev/full' })
  expect(full).toMatchObject({ code: 11, err: 'parley: stdout: no space left on the disk\n' })
  const { child, ended } = start([flag])
  // A reader that closes stdout is not a failure.
  child.stdout?.destroy()
  expect(await ended).toMatchObject({ code: 0, err: '' })
})

test.concurrent('a signal ends a run that writes its last message to a full pipe (needs timeout)', async () => {
  // If the run survives SIGTERM for 2 s, `timeout` kills the run with exit code 137. Nothing reads the pipe
  // before the run has ended.
  const shell = `(head -c 65536 /dev/zero
      timeout -k 2 1 "$0" "$1" chat --nonsense < <(exec 2> /dev/null; exec sleep 4); echo $? > code
    ) 2>&1 | (until [ -e code ]; do sleep 0.1; done; cat > all)`
  const cwd = temporaryFolder()
  const env = { ...childEnvironment, HOME: cwd }
  await promisify(execFile)('bash', ['-c', shell, process.execPath, binary], { cwd, env })
  expect(readFileSync(`${cwd}/code`, 'utf8')).toBe('124\n')
})

test('help on a narrow terminal puts long descriptions below their flags and wraps them at words', async () => {
  const { out } = await run(['chat', '--help'], { tty: ['stdout'], columns: 40 })
  expect(out).toContain("\n  prompt\n    the prompt; stdin is appended, or\n    inserted at '-'\n")
})

test('help on a narrow terminal wraps the rows of the tables in a topic', async () => {
  const print = async (topic: string) => (await run(['help', topic], { tty: ['stdout'], columns: 40 })).out
  const exits = await print('exit-codes')
  expect(exits).toMatch(/\n {2}6 {3}rate-limited {2}429, or 503 with\n {20}Retry-After, after\n/)
  for (const line of (exits + (await print('formats'))).split('\n'))
    expect(line.length).toBeLessThanOrEqual(40)
})
