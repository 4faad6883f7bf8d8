import { existsSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'

/** The whole path of a name. The current folder may be gone, and is asked for only if the name begins there. */
export const absolutePath = (host: { readonly cwd: string }, name: string): string =>
  isAbsolute(name) ? resolve(name) : resolve(host.cwd, name)

/**
 * The target of a link that leads somewhere, else the path itself. The system's own words for it: if upper and lower case
 * are one, so are two spellings of a file.
 */
function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

/** As many as Linux follows. */
const mostLinks = 40

/** The place of a file, or the one where a file of this name would be made: a link may lead to what is not there yet. */
export function realPlace(path: string, links = mostLinks): string {
  const place = join(realPath(dirname(path)), basename(path))
  // What is there may have no name, as a pipe at /dev/stdout: the words of its link lead nowhere.
  const target = links > 0 && !existsSync(place) ? targetOf(place) : undefined
  return target === undefined ? realPath(place) : realPlace(resolve(dirname(place), target), links - 1)
}

/** Where a link leads. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Whether a name says that it is a folder's, by its end. Elsewhere than on Windows a file's name may end in a `\`. */
export const isFolderName = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
