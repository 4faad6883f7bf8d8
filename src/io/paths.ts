import { accessSync, constants, existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { asFileError, CliError, usageError } from '../errors.ts'

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
const maxLinks = 40

/** A path, and those that it leads to if it is a link; the last one may not be there. */
export function followLinks(path: string): string[] {
  const places = [path]
  try {
    for (let place = path; places.length < maxLinks; places.push(place))
      place = resolve(realPath(dirname(place)), readlinkSync(place))
  } catch {
    // The last one is not a link.
  }
  return places
}

/** The place of a file, or the one where a file of this name would be made. */
export const resolveRealPath = (path: string): string =>
  realPath(inRealFolder(followLinks(path).at(-1) ?? path))

const inRealFolder = (path: string) => join(realPath(dirname(path)), basename(path))

/** Whether it names what a process has open, such as `/dev/stdout`. */
export const isOpenDescriptor = (path: string): boolean =>
  followLinks(path).some((place) => /^\/proc\/[^/]+\/fd\/\d+$/.test(inRealFolder(place)))

/**
 * Finds where a file of this name is written. No link is ever written through, unless it leads to a device, a pipe or an
 * open descriptor: such a target is direct. Throws a `CliError` of kind `file` for what cannot be made or, unless
 * `replaces` is false, replaced.
 */
export function findTarget(
  host: { readonly cwd: string; platform: NodeJS.Platform; uid?: number },
  name: string,
  replaces = true,
) {
  if (name === '') throw usageError('a file must have a name')
  const path = absolutePath(host, name)
  const failure = (why: string) => new CliError('file', `${name}: ${why}`)
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory() || isFolderName(name, host.platform)) throw failure('it is a folder')
    const isDirect = (stat !== undefined && !stat.isFile()) || isOpenDescriptor(path)
    const obstacle = isDirect ? undefined : findReplaceProblem(path, host.uid, replaces)
    if (obstacle) throw failure(obstacle)
    const folder = dirname(path)
    if (!isDirect && !existsSync(folder)) throw failure(`there is no folder ${dirname(name)}/`)
    if (!isDirect) accessSync(folder, constants.W_OK)
    if (stat) accessSync(path, constants.W_OK)
    return { path, stat, isDirect }
  } catch (error) {
    throw asFileError(error, name)
  }
}

/** Says in words why what has this name is not replaced; `undefined` if it is. Throws what the file system throws. */
export function findReplaceProblem(
  path: string,
  uid: number | undefined,
  replaces: boolean,
): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return undefined
  if (found.isSymbolicLink())
    return 'it is a symbolic link, and no link is written through: name the file itself'
  if (!found.isFile()) return 'it is not a regular file'
  if (!replaces) return 'it already exists (--force replaces it)'
  // In a shared folder such as /tmp anybody may make a file, and only its owner, or the folder's, can replace it.
  const folder = statSync(dirname(path))
  const isOthers = uid !== undefined && ![0, found.uid, folder.uid].includes(uid)
  return isOthers && (folder.mode & 0o1000) !== 0 ? 'only its owner can replace it in this folder' : undefined
}

/**
 * The mode of a file that replaces this one: that of a user's own file is kept, without the bits that lend rights. Absent
 * for any other, which is replaced as if it were new, and on a system where files have no owners.
 */
export function findModeToKeep(path: string, uid: number | undefined): number | undefined {
  const stat = uid === undefined ? undefined : lstatSync(path, { throwIfNoEntry: false })
  return stat && stat.uid === uid ? stat.mode & 0o777 : undefined
}

/** Whether a name says that it is a folder's, by its end. Elsewhere than on Windows a file's name may end in a `\`. */
export const isFolderName = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
