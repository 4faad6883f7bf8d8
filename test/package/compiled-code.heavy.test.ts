import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { binary, preloading } from '../harness/process.ts'
import { readText, temporaryFolder } from '../harness/run.ts'

/** Copy of the program whose source can be changed. */
const copy = temporaryFolder()
const program = join(copy, 'dist/program.cjs')

/** A line that every help page contains, and a replacement of the same length. */
const [original, forged] = ['print this help', 'PRINT THIS HELP']

/** Compiled code that prints `forged` for a source that prints `original`, by file name. */
const forgery = new Map<string, Buffer>()

beforeAll(() => {
  cpSync(join(binary, '../../bin'), join(copy, 'bin'), { recursive: true })
  cpSync(join(binary, '../../dist'), join(copy, 'dist'), { recursive: true })
  const source = readFileSync(program)
  const other = source.toString().replace(original, forged)
  writeFileSync(program, other)
  const { folder } = help()
  writeFileSync(program, source)
  for (const [name, bytes] of filesIn(folder)) {
    if (name.endsWith('-program.cjs')) source.copy(bytes, bytes.lastIndexOf(other))
    forgery.set(name, bytes)
  }
})

/** Runs `chat --help` in a home folder that `plant` has prepared. `text` is `original` or `forged`. */
function help(plant: (folder: string, home: string) => void = () => {}, env: Record<string, string> = {}) {
  const home = temporaryFolder()
  const folder = join(home, '.cache/parley')
  mkdirSync(join(home, '.cache'))
  plant(folder, home)
  const text = helpIn(home, env)
  const isFolder = lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()
  return { home, folder, text, kept: isFolder ? readdirSync(folder) : [] }
}

function helpIn(home: string, env: Record<string, string> = {}): string | undefined {
  const argv = [join(copy, 'bin/parley.cjs'), 'chat', '--help']
  const out = execFileSync(process.execPath, argv, {
    cwd: home,
    encoding: 'utf8',
    env: { ...childEnvironment, HOME: home, ...env },
  })
  return [original, forged].find((text) => out.includes(text))
}

/** Returns the files with code, without the empty files that mark exit codes. */
const filesIn = (folder: string): [name: string, bytes: Buffer][] => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.cjs'))
  return names.map((name) => [name, readFileSync(join(folder, name))])
}

const modeOf = (path: string) => (lstatSync(path).mode & 0o777).toString(8)

/** Creates a cache folder with forged code, as another user could if the folder had open permissions. */
function plantForgery(folder: string, mode = 0o700): void {
  mkdirSync(folder)
  for (const [name, bytes] of forgery) writeFileSync(join(folder, name), bytes)
  chmodSync(folder, mode)
}

test('parley saves its compiled code, and the next run uses it (needs POSIX files)', () => {
  const { folder, text } = help()
  expect(text).toBe(original)
  expect(readdirSync(folder).map((name) => name.replace(/.*-/, ''))).toEqual(
    expect.arrayContaining(['main.cjs', 'program.cjs']),
  )
  expect(help((there) => plantForgery(there)).text).toBe(forged)
})

test('parley saves its compiled code again after the first run with an exit code, but not after the second run with this exit code (needs POSIX files)', () => {
  const { home, folder } = help()
  const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('-program.cjs'))
  const file = join(folder, name)
  const { size } = lstatSync(file)
  const failUsage = () =>
    spawnSync(process.execPath, [join(copy, 'bin/parley.cjs'), 'chat', '--nonsense'], {
      env: { ...childEnvironment, HOME: home },
    })
  expect(failUsage().status).toBe(2)
  expect(lstatSync(file).size).toBeGreaterThan(size)
  utimesSync(file, 1, 1)
  failUsage()
  helpIn(home)
  expect(lstatSync(file).mtimeMs).toBe(1000)
})

const place = (part: number) => (bytes: Buffer) => Math.floor(bytes.length * part)
const flip = (part: number) => (bytes: Buffer) =>
  bytes.map((byte, at) => byte ^ Number(at === place(part)(bytes)))

test.each<[string, (bytes: Buffer) => Uint8Array]>([
  ['damaged compiled code', flip(0.1)],
  ['compiled code of another source', flip(0.9)],
  ['an empty file of compiled code', () => Buffer.alloc(0)],
])('parley replaces %s without running it (needs POSIX files)', (_, damage) => {
  const [name, bytes] = [...forgery].find(([each]) => each.endsWith('-program.cjs')) as [string, Buffer]
  const { home, folder, text } = help((planted) => {
    plantForgery(planted)
    writeFileSync(join(planted, name), damage(bytes))
  })
  expect(text).toBe(original)
  expect(lstatSync(join(folder, name)).size).toBeGreaterThan(1000)
  expect(helpIn(home)).toBe(original)
})

test('K35: parley saves compiled code in a folder with mode 0700 and in files with 0600 (needs POSIX files)', () => {
  const { folder } = help()
  expect(modeOf(folder)).toBe('700')
  const modes = readdirSync(folder).map((name) => modeOf(join(folder, name)))
  expect([...new Set(modes)]).toEqual(['600'])
  const readable = help((there) => plantForgery(there, 0o755))
  expect(readable.text).toBe(forged)
  expect(modeOf(readable.folder)).toBe('700')
})

test.each([
  ['a folder that others can write', (folder: string) => plantForgery(folder, 0o777)],
  ['a file instead of the folder', (folder: string) => writeFileSync(folder, '')],
  [
    'a symbolic link to a folder',
    (folder: string, home: string) => {
      plantForgery(join(home, 'elsewhere'))
      symlinkSync(join(home, 'elsewhere'), folder)
    },
  ],
  [
    'files that others can write',
    (folder: string) => {
      plantForgery(folder)
      for (const name of forgery.keys()) chmodSync(join(folder, name), 0o622)
    },
  ],
])(
  'K35: parley does not use a cache of compiled code that others may have written: %s (needs POSIX files)',
  (_, plant) => expect(help(plant).text).toBe(original),
)

test('K35: parley neither writes compiled code through a link nor waits for a FIFO (needs POSIX files)', () => {
  const { folder, home, text } = help((planted) => {
    plantForgery(planted)
    const [first = '', second = ''] = forgery.keys()
    for (const name of [first, second]) rmSync(join(planted, name))
    writeFileSync(join(planted, '../precious'), 'precious')
    symlinkSync('../precious', join(planted, first))
    execFileSync('mkfifo', [join(planted, second)])
  })
  expect(text).toBe(original)
  expect(readText(home, '.cache/precious')).toBe('precious')
  expect(filesIn(folder).map(([name]) => name)).toEqual([...forgery.keys()].toSorted())
})

test.each(['/proc', ''])('K35: parley works without a cache of compiled code if HOME is %j', (HOME) => {
  const { home, text } = help(() => {}, { HOME })
  expect(text).toBe(original)
  expect(readdirSync(home, { recursive: true })).toEqual(['.cache'])
})

test('compiled code is not stored if the disk has less than 64 MiB of room', () => {
  const full = preloading("require('node:fs').statfsSync = () => ({ bavail: 1, bsize: 64 * 2 ** 20 })")
  expect(help(() => {}, full)).toMatchObject({ text: original, kept: [] })
})
