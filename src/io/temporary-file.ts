import { closeSync, constants, copyFileSync, fchmodSync, linkSync, openSync, rmSync, write } from 'node:fs'
import { dirname, join } from 'node:path'
import { renameFile } from './rename-file.ts'
import { writeAll } from './write-all.ts'

/** A file under a name of its own, beside the one that it becomes. All methods but `write` are synchronous. */
export interface TemporaryFile {
  /** How many bytes have been written. */
  readonly size: number
  write(chunk: Uint8Array | string): Promise<void>
  /** The same, for a signal. */
  writeNow(text: string): void
  /** Renames it to the target, replacing what is there. */
  replace(target: string): void
  /** Gives it a second name. Returns `false` where something has that name. */
  link(path: string): boolean
  /** Removes it under its own name. Does not throw: what cannot be removed is left. */
  remove(): void
}

export interface TemporaryFileOptions {
  mode?: number
  /** The mode is set without the process's umask. */
  isExact?: boolean
}

/**
 * Creates it exclusively, so that it is never another's file or a link, and synchronously: a file created in the
 * background could appear after a signal's cleanup. Throws what the file system throws, as its methods do.
 */
export function createTemporaryFile(
  target: string,
  { mode = 0o666, isExact = false }: TemporaryFileOptions = {},
): TemporaryFile {
  const path = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
  let file: number | undefined = openSync(path, 'wx', mode)
  let size = 0
  function close(): void {
    const opened = file
    file = undefined
    if (opened !== undefined) closeSync(opened)
  }
  function remove(): void {
    for (const step of [close, () => rmSync(path, { force: true })]) {
      try {
        step()
      } catch {
        // This failure must not hide the one before it.
      }
    }
  }
  try {
    if (isExact) fchmodSync(file, mode & 0o7777)
  } catch (error) {
    remove()
    throw error
  }
  return {
    get size() {
      return size
    },
    async write(chunk) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      for (let rest = bytes; rest.length > 0; ) {
        const written = await writeSome(file, rest)
        size += written
        rest = rest.subarray(written)
      }
    },
    writeNow(text) {
      if (file === undefined) throw new Error('the file is closed')
      const bytes = Buffer.from(text)
      writeAll(file, bytes)
      size += bytes.length
    },
    replace(target) {
      close()
      renameFile(path, target)
    },
    link: (other) => linkInto(path, other),
    remove,
  }
}

const writeSome = (file: number | undefined, bytes: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) => {
    if (file === undefined) throw new Error('the file is closed')
    write(file, bytes, (error, written) => (error ? reject(error) : resolve(written)))
  })

/** Neither a link nor, where there are no links, a copy ever replaces something that exists. */
function linkInto(path: string, other: string): boolean {
  try {
    try {
      linkSync(path, other)
    } catch (error) {
      if (!withoutLinks.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      copyFileSync(path, other, constants.COPYFILE_EXCL)
    }
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The errors of a file system without links; EISDIR is what Windows' answer for exFAT becomes. */
const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']
