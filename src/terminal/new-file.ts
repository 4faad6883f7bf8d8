import { closeSync, constants, openSync, rmSync, writeFile } from 'node:fs'
import { copyFile, link, lstat, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export interface NewFileOptions {
  /** Take the place of a regular file. */
  replaces?: boolean
  /** Less the process's umask; by default that of any new file. */
  mode?: number
  /** Where the removal of the unfinished file is kept, for a signal. */
  cleanups: Set<() => void>
}

/**
 * Writes a file whole or not at all: under a name of its own beside the target, then put in place. Returns
 * whether it was; it is not where something of that name exists. Throws what the file system throws.
 */
export async function createFile(
  target: string,
  bytes: Uint8Array,
  { replaces = false, mode = 0o666, cleanups }: NewFileOptions,
): Promise<boolean> {
  const temporary = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
  const remove = () => rmSync(temporary, { force: true })
  // Opened here and now: a file opened in the background could appear after a signal's cleaning up.
  const file = openSync(temporary, 'wx', mode)
  cleanups.add(remove)
  try {
    try {
      await promisify(writeFile)(file, bytes)
    } finally {
      closeSync(file)
    }
    return await (replaces ? rename(temporary, target).then(() => true) : linkInto(temporary, target))
  } finally {
    remove()
    cleanups.delete(remove)
  }
}

/** A link is never made over something that exists; where there are no links, neither is this copy. */
async function linkInto(temporary: string, target: string): Promise<boolean> {
  try {
    await link(temporary, target).catch((error: NodeJS.ErrnoException) => {
      if (!withoutLinks.includes(error.code ?? '')) throw error
      return copyFile(temporary, target, constants.COPYFILE_EXCL)
    })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** How a file system says that it has no links. */
const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/**
 * What stands in the way of a new file, in words, or `undefined`. A link or a special file always does, a regular
 * file unless it may be replaced. Throws what the file system throws.
 */
export async function findObstacle(path: string, replaces: boolean): Promise<string | undefined> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return undefined
  if (found.isFile()) return replaces ? undefined : 'it exists already (--force replaces it)'
  if (found.isSymbolicLink()) return 'it is a symbolic link, which is left alone'
  return found.isDirectory()
    ? 'it is a folder (with a / at its end, images go into it)'
    : 'it is no regular file'
}
