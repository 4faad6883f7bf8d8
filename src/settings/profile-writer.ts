import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Conf from 'conf'
import type { ProcessInfo } from '../context.ts'
import { CliError, describeFileError, hasCode } from '../errors.ts'
import { makePrivateFolder } from '../io/cache-folder.ts'
import { lock } from '../io/lock.ts'
import {
  findLink,
  findOpenPlace,
  lookAt,
  mayHoldCommand,
  type ProfileFile,
  protectFolder,
  readProfiles,
  requireProfilePath,
  unusable,
  type Warn,
  wayToClose,
} from './profile-file.ts'

/** The version of the file's format. */
const version = 1

/** A process that has the lock writes at once, so the lock is soon free again. */
const waiting = {
  maxWaitMs: 60_000,
  kind: 'credentials',
  consequence: 'nothing was changed',
} as const

/** Makes the new file from the old one; `undefined` changes nothing. */
type Change = (file: ProfileFile) => ProfileFile | undefined

/**
 * Changes the profile file: one writer at a time, written whole or not at all, readable by its owner only. Throws
 * a `CliError` of kind `credentials` if it cannot or may not be written.
 */
export async function changeProfiles(info: ProcessInfo, warn: Warn, change: Change): Promise<void> {
  const path = requireProfilePath(info)
  try {
    prepareProtected(path, info, warn)
    while (!(await changeOnce(path, info, warn, change))) {}
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unusable(path, describeFileError(error))
  }
}

/**
 * Returns false if another process removed this one's lock, because it seemed dead. Between lock and release
 * nothing takes long unless the file is broken, so a signal never leaves a lock or a temporary file behind.
 */
async function changeOnce(path: string, info: ProcessInfo, warn: Warn, change: Change): Promise<boolean> {
  const held = await lock(path, waiting)
  try {
    removeLeftovers(path)
    const file = await readProfiles(info, warn)
    if (file.version !== undefined && file.version !== version)
      throw unusable(path, 'written by a newer parley')
    // The new file would be the user's own, and so would each command that a stranger wrote.
    const place = mayHoldCommand(JSON.stringify(file)) ? findOpenPlace(info) : undefined
    if (place !== undefined) throw unusable(place, `others can write it; ${wayToClose}`)
    const changed = change(file)
    if (!held.isHeld()) return false
    if (changed) write(path, changed)
    return true
  } catch (error) {
    // The next holder removes the temporary file of a writer that was paused for long: nothing was written.
    if (hasCode(error, 'ENOENT') && !held.isHeld()) return false
    throw error
  } finally {
    held.release()
  }
}

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

/** Makes the folder of a file of secrets. Throws a `CliError` if the file may not be replaced. */
function prepareProtected(path: string, info: ProcessInfo, warn: Warn): void {
  const folder = dirname(path)
  makeWithParents(folder)
  const link = findLink(path)
  if (link) throw unusable(link, 'it is a symbolic link: change the file that it points to')
  const stat = lookAt(path)
  if (stat && info.uid !== undefined && stat.uid !== info.uid) {
    throw unusable(path, `it belongs to another user (uid ${stat.uid}), and is not changed`)
  }
  if (!stat) protectFolder(folder, info, warn)
}

/** Node's recursive mkdir never returns if a folder cannot be made, as in /proc. */
function makeWithParents(folder: string): void {
  if (lookAt(folder)) return
  if (dirname(folder) !== folder) makeWithParents(dirname(folder))
  makePrivateFolder(folder)
}
