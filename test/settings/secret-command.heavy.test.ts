import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute, start } from '../harness/process.ts'
import { readText, temporaryFolder } from '../harness/run.ts'
import { runAtTerminal } from '../harness/typing.ts'

/** Commands that start processes which never end by themselves. One process ignores signals. */
const member = (rest: string) => `sh -c 'echo $$ >> pids; ${rest}'`
const children = `${member('trap "" TERM HUP; sleep 300; sleep 300')} & ${member('exec sleep 300')}`
/** The commands of `children`, and one more process whose parent has ended. */
const family = `(${member('exec sleep 300')} &); ${children}`

const world = (command: string) => {
  const env = {
    PARLEY_ACCESS_TOKEN: '',
    PARLEY_ACCESS_TOKEN_COMMAND: command,
    PARLEY_BASE_URL: 'http://127.0.0.1:8',
  }
  return { cwd: temporaryFolder(), env }
}
const pidsIn = (cwd: string) =>
  existsSync(join(cwd, 'pids')) ? readText(cwd, 'pids').trim().split('\n').map(Number) : []
const isAlive = (pid: number) => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' })
  return /^[^Z\s]/.test(stdout.trim())
}
const until = (condition: () => boolean) => expect.poll(condition).toBe(true)
test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'K32: %s to parley ends all processes of accessTokenCommand (needs ps)',
  async (signal) => {
    const given = world(family)
    const { child, ended } = start(['chat', 'x'], given)
    await until(() => pidsIn(given.cwd).length === 3)
    child.kill(signal)
    expect(await ended).toMatchObject({ signal, out: '' })
    await until(() => !pidsIn(given.cwd).some(isAlive))
  },
)

test('K33: parley ends all processes of accessTokenCommand after 60 s (needs ps)', async () => {
  const given = world(family)
  const hurry = join(given.cwd, 'hurry.cjs')
  writeFileSync(
    hurry,
    `const { existsSync, readFileSync } = require('node:fs')
     const wait = setTimeout
     globalThis.setTimeout = (act, time, ...more) => {
       if (time < 55_000 || time > 60_000) return wait(act, time, ...more)
       // Simulates the limit of a minute: calls act when all processes have started.
       const minute = setInterval(() => {
         if (!existsSync('pids') || readFileSync('pids', 'utf8').split('\\n').length < 4) return
         clearInterval(minute)
         act()
       }, 20)
       return minute
     }`,
  )
  const env = { ...given.env, NODE_OPTIONS: `--require ${hurry}` }
  const ended = await execute(['chat', 'x'], { ...given, env })
  expect(ended).toMatchObject({ code: 3, out: '' })
  expect(ended.err).toContain('(PARLEY_ACCESS_TOKEN_COMMAND) did not end within 60 s\n')
  expect(pidsIn(given.cwd)).toHaveLength(3)
  await until(() => !pidsIn(given.cwd).some(isAlive))
})

test.each([
  ['K36', '--deadline', 'did not end before the deadline', { deadline: true }],
  ['K38', '--timeout', 'did not end within 0.5 s', {}],
])('%s: parley ends accessTokenCommand after %s and exits with 3 (needs sh)', async (...row) => {
  const [, flag, problem, more] = row
  const ended = await execute(['chat', 'x', '--errors', 'json', flag, '0.5'], world('sleep 15; echo t'))
  expect(ended).toMatchObject({ code: 3, out: '', err: expect.stringContaining(problem) })
  expect(JSON.parse(ended.err).error).toMatchObject({ ...more, retry: 'later' })
})

test('K33: parley ends accessTokenCommand if it prints over 1 MiB (needs sh)', async () => {
  const ended = await execute(['chat', 'x'], world('yes'))
  expect(ended).toMatchObject({ code: 3, out: '', err: expect.stringContaining('printed more than 1 MiB') })
})

test('K34: accessTokenCommand can prompt on the terminal (needs script)', async () => {
  const prompt = "printf 'PIN? ' > /dev/tty; read pin < /dev/tty; echo $pin > pin; echo saved > /dev/tty"
  const { cwd, env } = world(`${prompt}; cat /dev/tty`)
  await runAtTerminal(
    'echo $$ > pid; exec "$NODE" "$PARLEY" chat x',
    cwd,
    [
      ['PIN? ', '1234\n'],
      ['saved', () => process.kill(Number(readText(cwd, 'pid')), 'SIGTERM')],
    ],
    env,
  )
  expect(readText(cwd, 'pin')).toBe('1234\n')
})
