import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
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
  const address = { PARLEY_BASE_URL: 'http://127.0.0.1:8' }
  const env = { ...address, PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: command }
  return { cwd: temporaryFolder(), env }
}
const pidsIn = (cwd: string) =>
  existsSync(join(cwd, 'pids')) ? readText(cwd, 'pids').trim().split('\n').map(Number) : []
const isAlive = (pid: number) => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' })
  return /^[^Z\s]/.test(stdout.trim())
}
const until = (condition: () => boolean) => expect.poll(condition).toBe(true)
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
test.each(signals)('K32: %s ends all processes of accessTokenCommand (needs ps)', async (signal) => {
  const given = world(family)
  const { child, ended } = start(['chat', 'x'], given)
  await until(() => pidsIn(given.cwd).length === 3)
  child.kill(signal)
  expect(await ended).toMatchObject({ signal, out: '' })
  await until(() => !pidsIn(given.cwd).some(isAlive))
})

test.each([
  ['K36', '--deadline', 'did not end before the deadline', { deadline: true }],
  ['K38', '--timeout', 'did not end within 3 s', {}],
])(
  '%s: parley ends every process of a secret command after %s (needs ps)',
  async (_, flag, problem, more) => {
    const given = world(family)
    const ended = await execute(['chat', 'x', '--errors', 'json', flag, '3'], given)
    expect(ended).toMatchObject({ code: 3, out: '', err: expect.stringContaining(problem) })
    expect(JSON.parse(ended.err).error).toMatchObject({ ...more, retry: 'later' })
    expect(pidsIn(given.cwd)).toHaveLength(3)
    await until(() => !pidsIn(given.cwd).some(isAlive))
  },
)

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
