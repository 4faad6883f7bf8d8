import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs'
import paths, { dirname } from 'node:path'
import type { ProcessInfo } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { CliError, describeFileError, hasErrorCode } from '../errors.ts'
import { findFileKindProblem, listLinkChain } from '../io/paths.ts'
import { describeJsonError, formatFieldPath } from '../wire/json/parse.ts'
import * as z from '../wire/zod.ts'

/** Unknown fields stay in the file, because another version of parley may have written them. */
const ProfileFile = z.buildOnFirstUse(() =>
  z.looseObject({
    version: z.optional(z.unknown()),
    current: z.optional(z.string()),
    profiles: z.optional(z.record(z.record(z.unknown()))),
  }),
)
export type ProfileFile = z.infer<ReturnType<typeof ProfileFile>>

export function findProfilePath(info: ProcessInfo): string | undefined {
  const { env, platform } = info
  const { isAbsolute, join, resolve } = platform === 'win32' ? paths.win32 : paths
  const given = env.PARLEY_CONFIG_DIR
  // Reads `cwd` only for a relative path, because reading it throws if the current folder was removed.
  if (given) return resolve(isAbsolute(given) ? '' : info.cwd, given, 'config.json')
  // Ignores relative paths, as the XDG specification requires.
  const absolute = (path: string | undefined) => (path && isAbsolute(path) ? path : undefined)
  const home = absolute(env.HOME)
  let folder = absolute(env.XDG_CONFIG_HOME) ?? (home && join(home, '.config'))
  if (platform === 'win32') folder = absolute(env.APPDATA)
  if (platform === 'darwin') folder = home && join(home, 'Library', 'Preferences')
  return folder && join(folder, 'parley', 'config.json')
}

export function requireProfilePath(info: ProcessInfo): string {
  const path = findProfilePath(info)
  if (path !== undefined) return path
  const variable = info.platform === 'win32' ? 'APPDATA' : 'HOME'
  throw new CliError('credentials', `no home folder for profiles: set ${variable} or PARLEY_CONFIG_DIR`)
}

export class UnreadableProfileFileError extends CliError {}

const unreadableError = (path: string, why: string) =>
  new UnreadableProfileFileError('credentials', `${path}: ${why}`)

/**
 * Returns `{}` for a missing file. Throws `UnreadableProfileFileError` if the user may not read the file, or if
 * a part of its path is not a folder, as with HOME=/dev/null. Throws a `CliError` for any other problem. The
 * messages never quote the file, which may contain secrets.
 */
export async function readProfileFile(
  host: ProcessInfo,
  messages: Context['messages'],
): Promise<ProfileFile> {
  const path = findProfilePath(host)
  if (path === undefined) return {}
  let bytes: Uint8Array | undefined
  try {
    bytes = readProtected(path, host, messages)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw (hasErrorCode(error, 'EACCES', 'EPERM', 'ENOTDIR') ? unreadableError : createProfileFileError)(
      path,
      describeFileError(error),
    )
  }
  return bytes === undefined ? {} : parseProfiles(bytes, path)
}

/** Returns a path that other users can write to: the profile file, a link to it, or a folder of either. */
export function findExposedPath(info: ProcessInfo): string | undefined {
  const path = findProfilePath(info)
  const { uid } = info
  if (path === undefined || uid === undefined) return undefined
  return listLinkChain(path)
    .flatMap((each) => [each, dirname(each)])
    .find((each) => isWritableByOthers(each, uid))
}

function isWritableByOthers(path: string, uid: number): boolean {
  let stat: Stats
  try {
    stat = statSync(path)
  } catch {
    // If parley may not examine a path, it cannot read the profile file either, so no warning is needed.
    return false
  }
  if (stat.uid !== uid && stat.uid !== 0) return true
  // In a folder with the sticky bit, nobody can replace another user's file. Secrets in containers are often
  // mounted in such a folder.
  const isSticky = stat.isDirectory() && (stat.mode & 0o1000) !== 0
  return (stat.mode & 0o022) !== 0 && !isSticky
}

/** Returns the parsed JSON instead of zod's copy, because the copy would not have a key `__proto__`. */
function parseProfiles(bytes: Uint8Array, path: string): ProfileFile {
  const malformed = (why: string) =>
    createProfileFileError(path, `${why}; correct the file, or move it away and run 'parley config init'`)
  let text = ''
  let content: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    content = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw malformed('not UTF-8 text')
    throw malformed(`not valid JSON: ${describeJsonError(text)}`)
  }
  const issue = ProfileFile().safeParse(content).error?.issues[0]
  if (issue) throw malformed(`${formatFieldPath(issue.path) || 'the file'}: ${issue.message}`)
  return content as ProfileFile
}

export const othersPermissionBits = 0o077

/**
 * Returns `undefined` for a missing file. Prints a warning if others have access to the file. Throws a
 * `CliError` if the file belongs to another user or is not a regular file.
 */
function readProtected(path: string, { uid }: ProcessInfo, messages: Context['messages']) {
  const file = openExisting(path)
  if (file === undefined) return undefined
  try {
    const stat = fstatSync(file)
    const problem = findFileKindProblem(stat)
    if (problem !== undefined) throw createProfileFileError(path, problem)
    const isOtherUsers = uid !== undefined && stat.uid !== uid && stat.uid !== 0
    if (isOtherUsers) throw unreadableError(path, `it belongs to another user (uid ${stat.uid})`)
    if (uid !== undefined && (stat.mode & othersPermissionBits) !== 0)
      messages.warn(`${path}: others have access to it; 'chmod 600' removes the access`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

function openExisting(path: string): number | undefined {
  try {
    // Without O_NONBLOCK, opening a named pipe would block.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw error
    if (lstatIfExists(path)) throw createProfileFileError(path, 'it is a broken symbolic link')
    return undefined
  }
}

export const findSymbolicLink = (path: string): string | undefined =>
  [dirname(path), path].find((each) => lstatIfExists(each)?.isSymbolicLink())

export const lstatIfExists = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

export const createProfileFileError = (path: string, why: string) =>
  new CliError('credentials', `${path}: ${why}`)

export const permissionAdvice =
  'check that its commands are your own, then remove the permission (chmod go-w)'
