import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Conf from 'conf'
import type { ProcessInfo } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { CliError, describeFileError, hasErrorCode } from '../errors.ts'
import { acquireLock, type FileLock } from '../io/lock.ts'
import {
  createProfileFileError,
  findExposedPath,
  findSymbolicLink,
  lstatIfExists,
  othersPermissionBits,
  type ProfileFile,
  permissionAdvice,
  readProfileFile,
  requireProfilePath,
} from './profile-file.ts'

const version = 1

type Change = (file: ProfileFile) => ProfileFile | undefined

/**
 * Locks the profile file and replaces it atomically, with mode 0600. Throws a `CliError` of kind
 * `credentials` if the file cannot be written.
 */
export async function rewriteProfileFile(context: Context, change: Change): Promise<void> {
  const path = requireProfilePath(context.host)
  let held: FileLock | undefined
  try {
    prepareProtected(path, context.host)
    held = await acquireLock(path, { ...context, name: path })
    removeLeftovers(path)
    const file = await readProfileFile(context.host, context.messages)
    if (file.version !== undefined && file.version !== version)
      throw createProfileFileError(
        path,
        'a newer version of parley wrote it: update parley, then repeat the command',
      )
    // If others can write to the file, somebody may have added a command. A rewritten file would belong to the
    // user, and the command would look like the user's own, so parley refuses.
    const exposed = JSON.stringify(file).includes('Command"') ? findExposedPath(context.host) : undefined
    if (exposed !== undefined)
      throw createProfileFileError(exposed, `others can write to it; ${permissionAdvice}`)
    const changed = change(file)
    // From here on, all steps are synchronous, so parley handles a signal only after it has released the
    // lock.
    held.requireHeld()
    if (changed) write(path, changed)
  } catch (error) {
    if (error instanceof CliError)
      throw error.kind === 'file' ? error.with({ consequence: 'nothing was changed' }) : error
    throw createProfileFileError(path, describeFileError(error))
  } finally {
    held?.release()
  }
}

/** Removes temporary files of killed processes, because they contain secrets. */
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
    // The file was already read with stricter checks, so `conf` must not parse it again.
    deserialize: () => ({}),
  })
  conf.store = { version, ...file }
}

function prepareProtected(path: string, info: ProcessInfo): void {
  const folder = dirname(path)
  makeFolderWithParents(folder)
  const link = findSymbolicLink(path)
  if (link) {
    const target = link === folder ? 'the folder' : 'the folder of the file'
    const why = `it is a symbolic link: set PARLEY_CONFIG_DIR to ${target} that it points to`
    throw createProfileFileError(link, why)
  }
  const stat = lstatIfExists(path)
  if (stat && info.uid !== undefined && stat.uid !== info.uid) {
    throw createProfileFileError(path, `it belongs to another user (uid ${stat.uid}), so it is not changed`)
  }
  // A folder of PARLEY_CONFIG_DIR may contain other files, so its mode stays.
  if (stat || info.env.PARLEY_CONFIG_DIR) return
  const own = lstatIfExists(folder)
  const isOpen = own?.isDirectory() && own.uid === info.uid && (own.mode & othersPermissionBits) !== 0
  if (isOpen) chmodSync(folder, 0o700)
}

/** Creates the folders one by one, because Node's recursive mkdir never returns in places such as /proc. */
function makeFolderWithParents(folder: string): void {
  if (lstatIfExists(folder)) return
  if (dirname(folder) !== folder) makeFolderWithParents(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    if (!hasErrorCode(error, 'EEXIST')) throw error
  }
}
