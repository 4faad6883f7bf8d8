import { realpathSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'

/** The whole path of a name. The current folder may be gone, and is asked for only if the name begins there. */
export const absolutePath = (host: { readonly cwd: string }, name: string): string =>
  isAbsolute(name) ? resolve(name) : resolve(host.cwd, name)

/**
 * The target of a link that leads somewhere, else the path itself. The system's own words for it: if upper and lower case
 * are one, so are two spellings of a file.
 */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

/** Whether a name says that it is a folder's, by its end. Elsewhere than on Windows a file's name may end in a `\`. */
export const isFolderName = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
