import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

declare module 'vitest' {
  interface ProvidedContext {
    /** Environment in which the tests were started. npm needs it, because it may contain a proxy. */
    outside: NodeJS.ProcessEnv
  }
}

/** Variables that programs need to run on this computer. */
const machineVariables =
  /^(PATH|HOME|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|SYSTEM(ROOT|DRIVE)|WINDIR|COMSPEC|PATHEXT|(LOCAL)?APPDATA|USERPROFILE|PROGRAM(FILES.*|DATA))$/i

/** Variables of vitest, of Stryker, and of the tests themselves. */
const testVariables = /^(TEST|VITEST|NODE_ENV$|_*STRYKER|MUTANTS_|PROOF_|TORTURE|SOAK_|(BATCH|FOLLOW)_RUNS$)/

/**
 * Sets the environment of all tests and creates their temporary folder, in which other users can write.
 * vitest starts its workers afterwards, so they inherit the environment. Returns a function that removes the
 * folder.
 */
export default function setUp(): () => void {
  // StrykerJS has changed the sources, and the changed sources cannot be built.
  if (process.env.MUTANTS_TESTS === undefined) buildIfOld()
  for (const name of Object.keys(process.env)) {
    if (!machineVariables.test(name) && !testVariables.test(name)) delete process.env[name]
  }
  process.env.TZ = 'UTC'
  process.umask(0o022)
  // On macOS the temporary folder is a symbolic link, but parley prints real paths, so tests need the real
  // path.
  const folder = mkdtempSync(join(realpathSync.native(findFastFolder(neededBytes)), 'parley-tests-'))
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  process.env.TEMP = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
}

/** Free space that the tests need in their temporary folder. */
const neededBytes = 4 * 2 ** 30

/**
 * Returns the folder of shared memory, in which creating and flushing a file takes a tenth of the time.
 * Returns the default temporary folder if TMPDIR is set, or if the fast folder is too small or cannot contain
 * programs.
 */
export function findFastFolder(neededBytes: number): string {
  const folder = '/dev/shm'
  if (process.platform !== 'linux' || process.env.TMPDIR !== undefined) return tmpdir()
  const isSuitable = /^\S+ \/dev\/shm tmpfs rw(?!\S*,noexec)/m.test(readFileSync('/proc/mounts', 'utf8'))
  if (!isSuitable) return tmpdir()
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < neededBytes ? tmpdir() : folder
}

/** Builds the program if its sources are newer than `dist`, because tests that start a process use `dist`. */
function buildIfOld(): void {
  const root = join(import.meta.dirname, '../..')
  const sources = ['src', 'package.json', 'rolldown.config.ts'].map((name) => join(root, name))
  if (findNewestTime([join(root, 'dist')]) < findNewestTime(sources))
    execFileSync(process.execPath, [join(root, 'src/build/bundle.js')], { stdio: 'inherit' })
}

/** Returns the time of the last change of any file in these files and folders, or 0 if there is no file. */
function findNewestTime(paths: readonly string[]): number {
  const times = paths.map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0
    return findNewestTime(readdirSync(path).map((name) => join(path, name)))
  })
  return Math.max(0, ...times)
}

/** Environment of a process that a test starts. It has no home folder. */
export const childEnvironment = { PATH: process.env.PATH ?? '', TMPDIR: process.env.TMPDIR ?? '', TZ: 'UTC' }
