import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configFolder, readJson, readText, temporaryFolder } from '../harness/run.ts'
import { runAtTerminal } from '../harness/typing.ts'

const set = '"$NODE" "$PARLEY" config set accessToken'
const file = join(configFolder, 'config.json')
const readToken = (cwd: string) => readJson(cwd, file).profiles.default.accessToken

test('config set hides a typed secret and then restores the echo of the terminal (needs script)', async () => {
  const cwd = temporaryFolder()
  const { code, screen } = await runAtTerminal(`${set}; stty -a`, cwd, [['(not shown): ', 'canaryy\x7f-1\r']])
  expect(code).toBe(0)
  expect(screen).toMatch(/ echo /)
  expect(screen).toMatch(/ icanon /)
  expect(screen).not.toContain('canary')
  expect(readToken(cwd)).toBe('canary-1')
})

test('config set prints a prompt without control codes if stderr is not a terminal (needs script)', async () => {
  const cwd = temporaryFolder()
  const { code, screen } = await runAtTerminal(`${set} 2>&1 | cat`, cwd, [['(not shown): ', 'canary-1\r']])
  expect({ code, screen }).toEqual({ code: 0, screen: 'accessToken (not shown): \r\n' })
  expect(readToken(cwd)).toBe('canary-1')
})

test.each([
  ['Ctrl-C', 130, () => 'canary\x03'],
  ['SIGTERM', 143, (cwd: string) => () => void process.kill(Number(readText(cwd, 'pid')), 'SIGTERM')],
])('G28: %s at the prompt for a secret restores the terminal (needs script)', async (_, code, end) => {
  const cwd = temporaryFolder()
  const command = `sh -c 'echo $$ > pid; exec "$@"' sh ${set}; echo "code $?"; stty -a`
  const { screen } = await runAtTerminal(command, cwd, [['(not shown): ', end(cwd)]])
  expect(screen).toContain('parley: interrupted: nothing was changed')
  expect(screen).toContain(`code ${code}`)
  expect(screen).toMatch(/ echo /)
  expect(screen).toMatch(/ icanon /)
  expect(screen).not.toContain('canary')
  expect(existsSync(join(cwd, file))).toBe(false)
})

test('V40: Ctrl-Z at the prompt for a secret restores the terminal, and fg prompts again (needs bash, script)', async () => {
  const cwd = temporaryFolder()
  const { screen } = await runAtTerminal('PS1=[shell] exec bash --norc --noprofile -i', cwd, [
    ['[shell]', `${set}\r`],
    ['(not shown): ', 'canary-0\x1a'],
    ['Stopped', 'stty -a; fg\r'],
    ['(not shown): ', 'canary-1\r'],
    ['[shell]', 'exit\r'],
  ])
  expect(screen).toMatch(/Stopped[\s\S]* echo /)
  expect(screen).not.toContain('canary')
  expect(readToken(cwd)).toBe('canary-1')
})
