import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { binary, canRun } from './process.ts'
import { temporaryFolder } from './run.ts'

const canType = canRun('script', '-qec', 'true', '/dev/null')

/** What happens when a question stands on the screen: keys, or something else. */
type Reaction = string | (() => void)

/** Has a person type at a terminal: each answer once its question stands there. Returns what the screen showed. */
async function type(command: string, cwd: string, answers: [question: string, reaction: Reaction][]) {
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd,
    env: { ...program, PATH: process.env.PATH, HOME: cwd, TERM: 'xterm', SHELL: '/bin/sh' },
  })
  let screen = ''
  let from = 0
  child.stdout.on('data', (chunk) => {
    screen += chunk
    const [question = '', reaction = ''] = answers[0] ?? []
    const at = screen.indexOf(question, from)
    if (answers.length === 0 || at < 0) return
    from = at + question.length
    answers.shift()
    if (typeof reaction === 'string') child.stdin.write(reaction)
    else reaction()
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  return { code, screen }
}

const program = { NODE: process.execPath, PARLEY: binary }
const set = '"$NODE" "$PARLEY" config set accessToken'
const saved = (cwd: string) => join(cwd, '.config/parley/config.json')

test.skipIf(!canType)(
  'a secret that is typed is not shown, and the terminal shows again what comes after (needs script)',
  async () => {
    const cwd = temporaryFolder()
    const { code, screen } = await type(`${set}; stty -a`, cwd, [['(not shown): ', 'canaryy\x7f-1\r']])
    expect(code).toBe(0)
    expect(screen).toMatch(/ echo /)
    expect(screen).toMatch(/ icanon /)
    expect(screen).not.toContain('canary')
    expect(JSON.parse(readFileSync(saved(cwd), 'utf8')).profiles.default.accessToken).toBe('canary-1')
  },
)

const after = `echo "code $?"; stty -a`

test.skipIf(!canType)('Ctrl-C while it is typed gives the terminal back, and keeps nothing', async () => {
  const cwd = temporaryFolder()
  const ended = await type(`${set}; ${after}`, cwd, [['(not shown): ', 'canary\x03']])
  expectRestored(ended.screen, 'code 130')
  expect(existsSync(saved(cwd))).toBe(false)
})

test.skipIf(!canType)('so does a signal from elsewhere (needs script)', async () => {
  const cwd = temporaryFolder()
  const kill = () => process.kill(Number(readFileSync(join(cwd, 'pid'), 'utf8')), 'SIGTERM')
  const command = `sh -c 'echo $$ > pid; exec "$@"' sh ${set}; ${after}`
  const ended = await type(command, cwd, [['(not shown): ', kill]])
  expectRestored(ended.screen, 'code 143')
})

function expectRestored(screen: string, code: string): void {
  expect(screen).toContain('parley: interrupted: nothing was sent')
  expect(screen).toContain(code)
  expect(screen).toMatch(/ echo /)
  expect(screen).toMatch(/ icanon /)
  expect(screen).not.toContain('canary')
}

const canStop = canType && canRun('bash', '-ic', 'true')

test.skipIf(!canStop)(
  'V40: Ctrl-Z while it is typed gives the terminal back, and fg asks again',
  async () => {
    const cwd = temporaryFolder()
    const { code, screen } = await type(`PS1='ready> ' exec bash --norc --noprofile -i`, cwd, [
      ['ready> ', `${set} | cat\n`],
      ['(not shown): ', 'canary\x1a'],
      ['ready> ', 'stty -a; fg\n'],
      ['(not shown): ', '-1\r'],
      ['ready> ', 'exit\n'],
    ])
    expect(code).toBe(0)
    expect(screen).toMatch(/Stopped[\s\S]* icanon [\s\S]* echo /)
    expect(screen).not.toContain('canary')
    expect(JSON.parse(readFileSync(saved(cwd), 'utf8')).profiles.default.accessToken).toBe('canary-1')
  },
)

test.skipIf(!canType)('V40: Ctrl-Z where no shell could wake it stops nothing', async () => {
  const cwd = temporaryFolder()
  const { code, screen } = await type(`exec ${set}`, cwd, [
    ['(not shown): ', 'canary\x1a'],
    ['(not shown): ', '-1\r'],
  ])
  expect(code).toBe(0)
  expect(screen).not.toContain('canary')
  expect(JSON.parse(readFileSync(saved(cwd), 'utf8')).profiles.default.accessToken).toBe('canary-1')
})

test.skipIf(!canType)('config init asks on a terminal, one question after the other', async () => {
  const cwd = temporaryFolder()
  const { code, screen } = await type('"$NODE" "$PARLEY" config init', cwd, [
    ['(baseUrl): ', 'https://a.test\n'],
    ['(accessToken, not shown): ', 'canary-1\r'],
    ['(family) [alpha]: ', '\n'],
    ['(chatModel) [alpha-2.5-pro]: ', 'm-1\n'],
    ['(imageModel): ', '\n'],
    ['(agentsUrl): ', '\n'],
  ])
  expect(code).toBe(0)
  expect(screen).not.toContain('canary')
  expect(JSON.parse(readFileSync(saved(cwd), 'utf8')).profiles.default).toEqual({
    baseUrl: 'https://a.test',
    accessToken: 'canary-1',
    chatModel: 'm-1',
  })
})
