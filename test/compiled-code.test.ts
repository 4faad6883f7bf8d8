import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute, isRoot, nobody } from './process.ts'
import { temporaryFolder } from './run.ts'

/**
 * Runs parley in a home that `plant` has prepared, and returns the folder that Node was told to keep compiled code in,
 * and to run it from. Node itself is not asked: before 22.8 it keeps none.
 */
async function folderUsed(plant: (folder: string, cwd: string) => void, env: Record<string, string> = {}) {
  const cwd = temporaryFolder()
  const folder = join(cwd, '.cache/parley')
  mkdirSync(join(cwd, '.cache'))
  plant(folder, cwd)
  const listener = join(cwd, 'listener.cjs')
  writeFileSync(
    listener,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '24.0.0' } })
     require('node:module').enableCompileCache = (folder) => require('node:fs').writeFileSync(${JSON.stringify(join(cwd, 'told'))}, folder)`,
  )
  const NODE_OPTIONS = `--require ${listener}`
  const { code } = await execute(['help', 'input'], {
    cwd,
    env: { XDG_CACHE_HOME: '', NODE_OPTIONS, ...env },
  })
  const told = join(cwd, 'told')
  return { code, cwd, folder, used: existsSync(told) ? readFileSync(told, 'utf8') : undefined }
}

const modeOf = (path: string) => (lstatSync(path).mode & 0o777).toString(8)
/** As another user, or a program that let others write, leaves it. */
const planted = (folder: string, mode: number) => {
  mkdirSync(folder)
  writeFileSync(join(folder, 'code'), 'evil')
  chmodSync(folder, mode)
}

test('K35: compiled code is kept in a folder that is made for its user alone', async () => {
  const made = await folderUsed(() => {})
  expect(made).toMatchObject({ code: 0, used: made.folder })
  expect(modeOf(made.folder)).toBe('700')
  const there = await folderUsed((folder) => mkdirSync(folder, 0o700))
  expect(there.used).toBe(there.folder)
  const readable = await folderUsed((folder) => mkdirSync(folder, 0o755))
  expect(readable.used).toBe(readable.folder)
  expect(modeOf(readable.folder)).toBe('700')
})

test.each([
  ['where others can write', (folder: string) => planted(folder, 0o777)],
  ['where its group can write', (folder: string) => planted(folder, 0o770)],
  ['a file', (folder: string) => writeFileSync(folder, '')],
  [
    'a symbolic link',
    (folder: string, cwd: string) => {
      planted(join(cwd, 'elsewhere'), 0o700)
      symlinkSync(join(cwd, 'elsewhere'), folder)
    },
  ],
  ['a symbolic link to nothing', (folder: string) => symlinkSync('/nonexistent', folder)],
])('K35: one that may hold what others have put there is not used: %s', async (_, plant) => {
  expect(await folderUsed(plant)).toMatchObject({ code: 0, used: undefined })
})

test.skipIf(!isRoot)("K35: root does not run what lies in a user's home", async () => {
  const plant = (folder: string) => {
    planted(folder, 0o700)
    chownSync(folder, nobody, nobody)
  }
  expect(await folderUsed(plant)).toMatchObject({ code: 0, used: undefined })
})

test.each(['/proc', '/proc/self/fd', '/dev/null/x'])(
  'K35: a home where nothing can be made is done without: %s',
  async (HOME) => {
    expect(await folderUsed(() => {}, { HOME })).toMatchObject({ code: 0, used: undefined })
  },
)
