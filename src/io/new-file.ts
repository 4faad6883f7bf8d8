import { lstat } from 'node:fs/promises'
import { createTemporaryFile } from './temporary-file.ts'

export interface NewFileOptions {
  /** Replace a regular file. */
  replaces?: boolean
  /** Less the process's umask; by default that of any new file. */
  mode?: number
  /** Gets what removes the unfinished file, for a signal. */
  cleanups: Set<() => void>
}

/**
 * Writes a file whole or not at all: as a temporary file beside the target, which is then renamed or linked. Returns
 * `false` where the target exists and is not replaced. Throws what the file system throws.
 */
export async function createFile(
  target: string,
  bytes: Uint8Array,
  { replaces = false, mode, cleanups }: NewFileOptions,
): Promise<boolean> {
  const file = createTemporaryFile(target, { mode })
  cleanups.add(file.remove)
  try {
    await file.write(bytes)
    if (!replaces) return file.link(target)
    file.replace(target)
    return true
  } finally {
    file.remove()
    cleanups.delete(file.remove)
  }
}

/**
 * Says in words what prevents a new file, or returns `undefined`. A link or a special file always does, a regular
 * file unless it may be replaced. Throws what the file system throws.
 */
export async function findObstacle(path: string, replaces: boolean): Promise<string | undefined> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return undefined
  if (found.isFile()) return replaces ? undefined : 'it already exists (--force replaces it)'
  if (found.isSymbolicLink()) return 'it is a symbolic link, which is not replaced'
  return found.isDirectory()
    ? 'it is a folder (with a / at its end, images go into it)'
    : 'it is not a regular file'
}
