import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { asFileFailure, CliError } from '../errors.ts'

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

/** A path, and those that it leads to if it is a link; the last one may not be there. */
export function linksFrom(path: string): string[] {
  const places = [path]
  for (let place = path; places.length < mostLinks; places.push(place)) {
    const target = targetOf(place)
    if (target === undefined) break
    place = resolve(realPath(dirname(place)), target)
  }
  return places
}

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** The place of a file, or the one where a file of this name would be made. */
export const realPlace = (path: string): string => realPath(inRealFolder(linksFrom(path).at(-1) ?? path))

const inRealFolder = (path: string) => join(realPath(dirname(path)), basename(path))

/** Whether it names what a process has open, such as `/dev/stdout`. */
export const isDescriptor = (path: string): boolean =>
  linksFrom(path).some((place) => /^\/proc\/[^/]+\/fd\/\d+$/.test(inRealFolder(place)))

/** A place where a file is to be written. */
export interface Target {
  path: string
  /** Absent if there is nothing yet. */
  stat?: Stats
  /** It is a device, a pipe or an open descriptor, such as `/dev/stdout`: it is not replaced, but written to. */
  isDirect: boolean
}

/**
 * Finds where a file of this name is written. No link is ever written through, unless it leads to a device, a pipe or an
 * open descriptor. Throws a `CliError` of kind `file` for a link to a file or to nothing, for a folder, and for what cannot be
 * replaced.
 */
export function findTarget(
  host: { readonly cwd: string; platform: NodeJS.Platform; uid?: number },
  name: string,
): Target {
  const path = absolutePath(host, name)
  const stat = look(path, name)
  if (stat?.isDirectory() || isFolderName(name, host.platform))
    throw new CliError('file', `${name}: it is a folder`)
  const isDirect = (stat !== undefined && !stat.isFile()) || isDescriptor(path)
  if (!isDirect && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new CliError('file', `${name}: ${isLink}`)
  if (!isDirect && stat && !mayReplace(stat, statSync(dirname(path)), host.uid))
    throw new CliError('file', `${name}: only its owner can replace it in this folder`)
  return { path, stat, isDirect }
}

/** In a shared folder such as /tmp, where anybody may write a file, its owner alone can replace it, and the folder's. */
const mayReplace = (file: Stats, folder: Stats, uid: number | undefined): boolean =>
  (folder.mode & 0o1000) === 0 || uid === undefined || [0, file.uid, folder.uid].includes(uid)

export const isLink = 'it is a symbolic link, and no link is written through: name the file itself'

function look(path: string, name: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw asFileFailure(error, name)
  }
}

/**
 * The mode of a file that replaces this one: that of a user's own file is kept, without the bits that lend rights. Absent
 * for any other, which is replaced as if it were new.
 */
export function modeToKeep(stat: Stats | undefined, uid: number | undefined): number | undefined {
  return stat && (uid === undefined || stat.uid === uid) ? stat.mode & 0o777 : undefined
}

/** Whether a name says that it is a folder's, by its end. Elsewhere than on Windows a file's name may end in a `\`. */
export const isFolderName = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
