import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import type { ProcessInfo } from '../basic-context.ts'
import { CliError, toFileFailure, usageError } from '../errors.ts'

/** Reads `host.cwd` only for relative names, because reading it throws if the current folder was removed. */
export function toAbsolutePath(host: { readonly cwd: string }, name: string): string {
  // For an empty name, such as the value of an unset variable, `resolve` would return the current folder.
  if (name === '') throw usageError('the name of a file is empty: is a variable unset?')
  return isAbsolute(name) ? resolve(name) : resolve(host.cwd, name)
}

/**
 * Returns a missing path unchanged. `realpathSync.native` returns each name in its stored case. So on file
 * systems that ignore case, two spellings of one file are equal.
 */
function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

const maxLinks = 40

export function listLinkChain(path: string): string[] {
  const places = [path]
  try {
    for (let place = path; places.length < maxLinks; places.push(place))
      place = resolve(realPath(dirname(place)), readlinkSync(place))
  } catch {
    // `readlinkSync` throws for a path that is not a link, so the list ends with this path.
  }
  return places
}

/**
 * Returns the path without links. For a missing file, returns the path at which parley would create the file.
 */
export function resolveRealPath(path: string): string {
  const target = listLinkChain(path).at(-1) ?? path
  return realPath(join(realPath(dirname(target)), basename(target)))
}

/**
 * Checks before a request that parley can write to a file. Throws a `CliError` of kind `file` for a link, and
 * for a path at which no file can be created. Also throws for an existing file if `replaces` is false.
 * `isDirect` is true for a device or a pipe, because parley writes to these directly.
 * With `isRegular`, throws instead of returning `isDirect` as true.
 */
export function findOutputTarget(
  host: Omit<ProcessInfo, 'env'>,
  name: string,
  {
    replaces = true,
    isRegular = false,
    folderHint = 'name a file in it',
  }: { replaces?: boolean; isRegular?: boolean; folderHint?: string } = {},
) {
  const path = toAbsolutePath(host, name)
  const failure = (why: string) => new CliError('file', `${name}: ${why}`)
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory()) throw failure(`it is a folder: ${folderHint}`)
    if (endsInSeparator(name, host.platform)) throw failure('no such folder: give the path of a file')
    const isDirect = stat !== undefined && !stat.isFile()
    if (isDirect && isRegular) throw failure('it is not a regular file')
    const obstacle = isDirect ? undefined : findReplacementProblem(path, host.uid, replaces)
    if (obstacle) throw failure(obstacle)
    const folder = dirname(path)
    if (!isDirect && !existsSync(folder)) throw failure(`no such folder: ${dirname(name)}/`)
    if (stat) accessSync(path, constants.W_OK)
    return { path, stat, isDirect }
  } catch (error) {
    throw toFileFailure(error, name)
  }
}

export function findFileKindProblem(stat: Stats | undefined): string | undefined {
  if (!stat || stat.isFile()) return undefined
  if (stat.isSymbolicLink()) return 'it is a symbolic link: give the path of the file'
  return stat.isDirectory() ? 'it is a folder' : 'it is not a regular file'
}

/** Returns why parley cannot create or replace the file. Throws the errors of the file system. */
export function findReplacementProblem(
  path: string,
  uid: number | undefined,
  replaces: boolean,
): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found?.isFile()) return findFileKindProblem(found)
  if (!replaces) return 'it already exists (--force replaces it)'
  // In a shared folder such as /tmp, anybody can create a file. Only the owner of the file or of the folder
  // can replace the file.
  const folder = statSync(dirname(path))
  const isOthers = uid !== undefined && ![0, found.uid, folder.uid].includes(uid)
  return isOthers && (folder.mode & 0o1000) !== 0 ? 'only its owner can replace it in this folder' : undefined
}

/** Only Windows separates folders by `\`. Elsewhere a file name may end in `\`. */
export const endsInSeparator = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
