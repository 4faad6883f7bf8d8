import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  write,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** A file under a name of its own, beside the one that it is to become. All but `write` is done at once. */
export interface Draft {
  /** How many bytes have been written. */
  readonly size: number
  write(chunk: Uint8Array | string): Promise<void>
  /** Takes the place of what is there; the draft is gone. */
  replace(target: string): void
  /** Is also found under a name where nothing is; returns whether it is. */
  link(path: string): boolean
  /** What took a place stays. Does not throw: what cannot be removed is left. */
  remove(): void
}

export interface DraftOptions {
  mode?: number | undefined
  /** Whatever the process's umask says. */
  isExact?: boolean | undefined
}

/**
 * Begins a draft: made exclusively, so that it is never another's file or a link. Opened here and now: a file opened in
 * the background could appear after a signal's cleaning up. Throws what the file system throws, as its methods do.
 */
export function startDraft(target: string, { mode = 0o666, isExact = false }: DraftOptions = {}): Draft {
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
        // It must not hide why it is to be removed.
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
    replace(target) {
      close()
      renameSync(path, target)
    },
    link: (other) => linkInto(path, other),
    remove,
  }
}

const writeSome = (file: number | undefined, bytes: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) => {
    if (file === undefined) throw new Error('the draft is closed')
    write(file, bytes, (error, written) => (error ? reject(error) : resolve(written)))
  })

/** A link is never made over something that exists; where there are no links, neither is this copy. */
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

/** How a file system says that it has no links. */
const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']
