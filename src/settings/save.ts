import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Conf from 'conf'
import type { ProcessInfo } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import { lock } from '../io/lock.ts'
import { requireProfilePath } from './folder.ts'
import { type ProfileFile, readProfiles } from './profiles.ts'
import { prepareProtected, type Warn } from './protection.ts'

/** The version of the file's format. */
const version = 1

/** A process that has the lock writes at once, so the lock is soon free again. */
const waiting = {
  longest: 60_000,
  silence: 3000,
  kind: 'credentials',
  consequence: 'nothing was changed',
} as const

/** Makes the new file from the old one; `undefined` changes nothing. */
export type Change = (file: ProfileFile) => ProfileFile | undefined

/**
 * Changes the profile file: one writer at a time, written whole or not at all, readable by its owner only. Throws
 * a `CliError` of kind `credentials` where it cannot or may not be written.
 */
export async function changeProfiles(info: ProcessInfo, warn: Warn, change: Change): Promise<void> {
  const path = requireProfilePath(info)
  try {
    prepareProtected(path, info, warn)
    while (!(await changeOnce(path, { info, warn, change }))) {}
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('credentials', `${path}: ${fileProblem(error)}`)
  }
}

/**
 * Returns false where another process removed this one's lock, because it seemed dead. Between lock and release
 * nothing takes long unless the file is broken, so a signal never leaves a lock or a temporary file behind.
 */
async function changeOnce(
  path: string,
  { info, warn, change }: { info: ProcessInfo; warn: Warn; change: Change },
): Promise<boolean> {
  const { isHeld, release } = await lock(path, waiting)
  try {
    removeLeftovers(path)
    const file = await readProfiles(info, warn)
    if (file.version !== undefined && file.version !== version) throw tooNew(path)
    const changed = change(file)
    if (!isHeld()) return false
    if (changed) write(path, changed)
    return true
  } catch (error) {
    // The next holder removes the temporary file of a writer that was paused for long: nothing was written.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && !isHeld()) return false
    throw error
  } finally {
    release()
  }
}

const tooNew = (path: string) => new CliError('credentials', `${path}: written by a newer parley`)

/** Only a writer that was killed leaves its temporary file behind, with the secrets in it. */
function removeLeftovers(path: string): void {
  const leftover = /\.tmp-\d{10}[0-9a-f]{6}$/
  const [folder, name] = [dirname(path), basename(path)]
  for (const entry of readdirSync(folder)) {
    if (entry.startsWith(`${name}.`) && leftover.test(entry)) rmSync(join(folder, entry), { force: true })
  }
}

function write(path: string, file: ProfileFile): void {
  const conf = new Conf<ProfileFile>({
    cwd: dirname(path),
    configName: basename(path, '.json'),
    configFileMode: 0o600,
    accessPropertiesByDotNotation: false,
    // The file was already read, with more checks.
    deserialize: () => ({}),
  })
  conf.store = { version, ...file }
}
