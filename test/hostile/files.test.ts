import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering, message, readError, readText, rejected, run, temporaryFolder } from '../harness/run.ts'
import { getLockPath, openAgent } from '../harness/session-service.ts'
import { createProfileHome, noSettings } from '../settings/profile-home.ts'

const modeOf = (path: string): string => (lstatSync(path).mode & 0o777).toString(8)

/** Command that runs a task and writes an audit file. Its name follows. */
const runWithAudit = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--audit']

test('events run exits with 11 and prints that nothing was sent if its audit file is removed before the task', async () => {
  const cwd = temporaryFolder()
  const onList = () => void rmSync(join(cwd, 'a.ndjson'), { force: true })
  const service = openAgent({ rounds: [], onList })
  const { code, err } = await run([...runWithAudit, 'a.ndjson'], { cwd, exchange: service.exchange })
  expect({ code, tasks: service.tasks }, err).toEqual({ code: 11, tasks: 0 })
  expect(err).toContain('\n  nothing was sent\n')
})

/** Commands that lock the file `notes`, and the path of the lock file. */
const lockingCommands: [command: string, argv: string[], lock: string][] = [
  ['chat --thread', ['chat', 'hi', '--thread', 'notes'], 'notes.parley-lock'],
  ['chat --batch --results', ['chat', '--batch', 'in', '--results', 'notes'], 'notes.parley-lock'],
  ['chat --batch --resume', ['chat', '--batch', 'in', '--results', 'notes', '--resume'], 'notes.parley-lock'],
  ['events run --audit', [...runWithAudit, 'notes'], getLockPath('notes')],
]

/** Returns a folder with the file `in`, a batch of three lines. */
const makeBatchFolder = () => temporaryFolder({ in: '"one"\n"two"\n"three"\n' })

/** Makes the clock of lock files advance with each reading, so that a run does not wait long for a lock. */
function speedUpLocks(): void {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 300))
  onTestFinished(() => clock.mockRestore())
}

/** Shell commands that create a file at the path `$0`. */
const filesThatAreNoLocks = [
  ['a non-empty folder', 'mkdir "$0"; touch "$0/mine"'],
  ['a file with content', 'echo mine > "$0"'],
  ['a FIFO', 'mkfifo "$0"'],
]

describe.each(lockingCommands)('lock file of %s', (command, argv, lock) => {
  test.each(filesThatAreNoLocks)(
    `${command} exits with 11 and sends nothing if %s has the name of its lock file (needs sh and FIFOs)`,
    async (_, make = '') => {
      const cwd = makeBatchFolder()
      execFileSync('sh', ['-c', make, join(cwd, lock)])
      const list = () => execFileSync('sh', ['-c', 'ls -lR "$0"*', join(cwd, lock)], { encoding: 'utf8' })
      const before = list()
      speedUpLocks()
      const why = `${lock} is not a lock, so parley does not change it`
      expect(await run(argv, { cwd })).toMatchObject(rejected(11, why))
      expect(list()).toBe(before)
    },
  )

  test(`${command} waits while another run updates the lock file, and replaces an abandoned lock file`, async () => {
    const cwd = makeBatchFolder()
    const path = join(cwd, lock)
    writeFileSync(path, '')
    speedUpLocks()
    let beats = 0
    const beating = setInterval(() => utimesSync(path, ++beats, beats), 1)
    onTestFinished(() => clearInterval(beating))
    const running = run(argv, { cwd })
    // A hundred checks without an update would suffice to replace the lock file.
    while (beats < 300) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(existsSync(path)).toBe(true)
    clearInterval(beating)
    const { code, err } = await running
    expect(code).toBe(0)
    expect(err).toMatch(/another parley process locked .+; waiting until it ends, or for a few seconds if/)
    expect(existsSync(path)).toBe(false)
  })
})

test('F17, F18: if a lock is held until the deadline, parley prints the name of the lock file', async () => {
  const cwd = makeBatchFolder()
  writeFileSync(join(cwd, 'notes.parley-lock'), '')
  speedUpLocks()
  const argv = ['chat', '--batch', 'in', '--results', 'notes', '--deadline', '3s']
  const text = /deadline passed while it was locked: if no other parley is running, remove \S+\.parley-lock\n/
  expect(await run(argv, { cwd })).toMatchObject(rejected(11, text))
  // The same command may succeed later, so the empty results file does not stay.
  expect(readdirSync(cwd)).toEqual(['in', 'notes.parley-lock'])
})

test('events run --audit removes both locks of a killed run, and first prints the reason', async () => {
  const cwd = temporaryFolder()
  const argv = [...runWithAudit, 'notes']
  const seen: string[] = []
  const onList = () => void seen.push(...readdirSync(join(cwd, '.cache/parley')))
  await run(argv, { cwd, exchange: openAgent({ rounds: [], onList }).exchange })
  const locks = [join('.cache/parley', seen[0] ?? ''), getLockPath('notes')]
  for (const lock of locks) writeFileSync(join(cwd, lock), '')
  rmSync(join(cwd, 'notes'))
  speedUpLocks()
  const { code, err } = await run(argv, { cwd, exchange: openAgent({ rounds: [] }).exchange })
  expect(code, err).toBe(0)
  const note = (name: string) =>
    `another parley process locked ${name}; waiting until it ends, or for a few seconds if it was killed`
  expect(err.match(/another parley process locked .*/g)).toEqual([note('session s1'), note('notes for s1')])
})

describe('parley stops if another run takes its lock file (needs files replaced while open)', () => {
  const takeOver = (path: string) => {
    writeFileSync(`${path}.new`, '')
    renameSync(`${path}.new`, path)
  }

  test('a batch exits with 11 and sends no further line if another run takes its lock file', async () => {
    const cwd = makeBatchFolder()
    const path = join(cwd, 'notes.parley-lock')
    const exchange: Exchange = async (request) => {
      takeOver(path)
      return answering(message('hi'))(request)
    }
    const argv = ['chat', '--batch', 'in', '--results', 'notes', '--concurrency', '1']
    const { code, err, requests } = await run(argv, { cwd, exchange })
    expect([code, requests.length]).toEqual([11, 1])
    expect(err).toContain('notes: another parley process took over its lock')
    expect(existsSync(path)).toBe(true)
  })

  test('chat --thread exits with 10 and does not retry if another run took the lock after the first attempt', async () => {
    const cwd = temporaryFolder()
    const exchange: Exchange = async (_, onSent) => {
      onSent?.()
      takeOver(join(cwd, 'notes.parley-lock'))
      throw new CliError('unknown', 'the connection was reset')
    }
    const argv = ['chat', 'hi', '--thread', 'notes', '--retry-unknown', '--errors', 'json']
    const { code, err, requests } = await run(argv, { cwd, exchange })
    const error = readError(err)
    expect([code, requests.length]).toEqual([10, 1])
    expect(error).toMatchObject({ sent: 'unknown', retry: 'later', safeToRetry: false, attempts: 1 })
    expect(error.message).toMatch(
      / took over its lock; before that, the connection was reset; notes was not /,
    )
  })
})

describe('parley runs no accessTokenCommand that another user may have written (needs POSIX files and sh)', () => {
  const profile = JSON.stringify({
    profiles: { default: { baseUrl: 'https://a.test', accessTokenCommand: 'touch ran; echo secret' } },
  })
  const makeHome = (mode?: number) => createProfileHome(profile, mode)

  async function expectNoRun(cwd: string, writablePath: string): Promise<void> {
    const { code, err, requests } = await run(['chat', 'hi'], { cwd, env: noSettings })
    expect([code, requests, existsSync(join(cwd, 'ran'))]).toEqual([3, [], false])
    expect(err).toContain(`is not run: others can write ${writablePath}; check that`)
  }

  test.each([
    ['chat hi --dry-run -q', 0, "others have access to it; 'chmod 600' removes the access"],
    ['config set timeout 5', 3, 'others can write to it; check that its commands are your own'],
  ])('%s exits with %i and runs no command of a profile file of mode 0666', async (line, exit, note) => {
    const { cwd, path } = makeHome(0o666)
    const { code, err } = await run(line.split(' '), { cwd, env: noSettings })
    expect([code, readFileSync(path, 'utf8'), modeOf(path)]).toEqual([exit, profile, '666'])
    expect(err).toContain(`${path}: ${note}`)
    await expectNoRun(cwd, path)
  })

  test('parley does not run accessTokenCommand if others can write the folder of the profile file', async () => {
    const { cwd, folder } = makeHome()
    chmodSync(folder, 0o777)
    await expectNoRun(cwd, folder)
  })

  test.each([
    ['the target', (target: string) => chmodSync(join(target, 'real.json'), 0o666), 'link'],
    ['the folder of the target', (target: string) => chmodSync(target, 0o777), 'target folder'],
  ])('parley runs no accessTokenCommand if others can write %s of a link', async (_, allowWriting, named) => {
    const { cwd, path } = makeHome()
    const target = join(cwd, 'target')
    mkdirSync(target, { mode: 0o700 })
    renameSync(path, join(target, 'real.json'))
    symlinkSync(join(target, 'real.json'), path)
    allowWriting(target)
    await expectNoRun(cwd, named === 'link' ? path : target)
  })

  test('parley runs accessTokenCommand if only the owner can write the profile file', async () => {
    const { cwd } = makeHome(0o644)
    const exchange = answering(message('ok'))
    expect((await run(['chat', 'hi'], { cwd, env: noSettings, exchange })).code).toBe(0)
  })

  test('parley runs accessTokenCommand from a profile file that Kubernetes mounts through links', async () => {
    const cwd = temporaryFolder()
    const mounted = join(cwd, 'mounted')
    mkdirSync(join(mounted, '..2026'), { recursive: true })
    writeFileSync(join(mounted, '..2026/config.json'), profile)
    symlinkSync('..2026', join(mounted, '..data'))
    symlinkSync('..data/config.json', join(mounted, 'config.json'))
    chmodSync(mounted, 0o1777)
    const env = { ...noSettings, PARLEY_CONFIG_DIR: mounted }
    expect((await run(['chat', 'hi'], { cwd, env, exchange: answering(message('ok')) })).code).toBe(0)
  })
})

/** Command lines whose last argument, a file to write, is missing. */
const writingCommands: Record<string, string[]> = {
  'chat -o': ['chat', 'hi', '-o'],
  'chat --thread': ['chat', 'hi', '--thread'],
  'chat --report': ['chat', 'hi', '--report'],
  'chat --batch --results': ['chat', '--batch', 'in', '--results'],
  'chat --batch --resume --results': ['chat', '--batch', 'in', '--resume', '--results'],
  'image -o --force': ['image', 'hi', '-m', 'm', '--force', '-o'],
  'api -o': ['api', 'gateway', '/v1/message', '-o'],
  'events run -o': ['events', 'run', 'go', '-s', 's1', '--no-stdin', '-o'],
  'events run --audit': runWithAudit,
}

describe.each(Object.entries(writingCommands))('%s and links (needs symbolic links)', (command, argv) => {
  test.each([
    ['a file', 'victim'],
    ['a missing file', 'nowhere'],
  ])(`${command} exits with 11 before sending if its file is a symbolic link to %s`, async (_, target) => {
    const cwd = temporaryFolder({ in: '"a"\n', victim: '' })
    symlinkSync(target, join(cwd, 'out'))
    const { code, err, requests } = await run([...argv, 'out'], { cwd })
    expect([code, requests, readlinkSync(join(cwd, 'out'))]).toEqual([11, [], target])
    expect(err).toContain('out: it is a symbolic link: give the path of the file\n  nothing was sent\n')
    expect(readText(cwd, 'victim')).toBe('')
    expect(readdirSync(cwd).sort()).toEqual(['in', 'out', 'victim'])
  })
})

test('chat writes files of -o, --thread and --report through a symbolic link to a folder (needs symbolic links)', async () => {
  const cwd = temporaryFolder()
  mkdirSync(join(cwd, 'real'))
  symlinkSync('real', join(cwd, 'linked'))
  const argv = ['chat', 'hi', '-o', 'linked/a.txt', '--thread', 'linked/t.json', '--report', 'linked/r.json']
  expect((await run(argv, { cwd })).code).toBe(0)
  expect(readdirSync(join(cwd, 'real')).sort()).toEqual(['a.txt', 'r.json', 't.json'])
})

test.each(['chat -o', 'events run -o'])(
  '%s exits with 11 if only another user can replace its file (needs POSIX files)',
  async (command) => {
    const cwd = temporaryFolder()
    chmodSync(cwd, 0o1777)
    writeFileSync(join(cwd, 'out'), '')
    chmodSync(join(cwd, 'out'), 0o666)
    const argv = [...(writingCommands[command] ?? []), 'out']
    const { code, err, requests } = await run(argv, { cwd, uid: (process.getuid?.() ?? 0) + 1 })
    expect([code, requests]).toEqual([11, []])
    expect(err).toContain('out: only its owner can replace it in this folder\n')
    expect(readdirSync(cwd)).toEqual(['out'])
    expect((await run(argv, { cwd })).code).not.toBe(11)
  },
)

/** Lets `chat -o` overwrite a file that has this mode. Returns the mode of the file afterwards. */
async function replaceFile(mode: number, owner?: number): Promise<number> {
  const cwd = temporaryFolder()
  const path = join(cwd, 'out')
  writeFileSync(path, '')
  if (owner !== undefined) chownSync(path, owner, owner)
  chmodSync(path, mode)
  const { code } = await run(['chat', 'hi', '-o', 'out'], { cwd, exchange: answering(message('ok')) })
  const { uid, mode: after } = lstatSync(path)
  expect([code, uid]).toEqual([0, process.getuid?.()])
  return after & 0o7777
}

test('chat -o keeps the mode of a replaced file without its special bits (needs POSIX files)', async () => {
  expect(await replaceFile(0o6755)).toBe(0o755)
  expect(await replaceFile(0o1600)).toBe(0o600)
})

test('chat -o replaces a file of another user by a file with the default mode (needs root)', async () => {
  expect(await replaceFile(0o4777, 65534)).toBe(0o666 & ~process.umask())
})
