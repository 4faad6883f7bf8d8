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
