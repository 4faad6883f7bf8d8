import { lstat } from 'node:fs/promises'
import { startDraft } from './draft.ts'

export interface NewFileOptions {
  /** Take the place of a regular file. */
  replaces?: boolean | undefined
  /** Less the process's umask; by default that of any new file. */
  mode?: number | undefined
  /** Where the removal of the unfinished file is kept, for a signal. */
  cleanups: Set<() => void>
}

/**
 * Writes a file whole or not at all: as a draft beside the target, then put in place. Returns whether it was; it is not
 * where something of that name exists. Throws what the file system throws.
 */
export async function createFile(
  target: string,
  bytes: Uint8Array,
  { replaces = false, mode, cleanups }: NewFileOptions,
): Promise<boolean> {
  const draft = startDraft(target, { mode })
  cleanups.add(draft.remove)
  try {
    await draft.write(bytes)
    if (!replaces) return draft.link(target)
    draft.replace(target)
    return true
  } finally {
    draft.remove()
    cleanups.delete(draft.remove)
  }
}

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
  if (found.isFile()) return replaces ? undefined : 'it already exists (--force replaces it)'
  if (found.isSymbolicLink()) return 'it is a symbolic link, which is left alone'
  return found.isDirectory()
    ? 'it is a folder (with a / at its end, images go into it)'
    : 'it is no regular file'
}
