import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs'
import paths, { dirname } from 'node:path'
import type { ProcessInfo } from '../context.ts'
import { CliError, describeFileError, hasCode } from '../errors.ts'
import { followLinks } from '../io/paths.ts'
import { describeJsonError, formatPath } from '../wire/json/parse.ts'
import * as z from '../wire/zod.ts'

/** The profile file. Fields that another version of parley added are kept. */
const ProfileFile = z.lazily(() =>
  z.looseObject({
    version: z.optional(z.unknown()),
    current: z.optional(z.string()),
    profiles: z.optional(z.record(z.record(z.unknown()))),
  }),
)
export type ProfileFile = z.infer<ReturnType<typeof ProfileFile>>

/** Warns the person of something unusual that does not stop the run. */
export type Warn = (line: string) => void

/** The profile file's path, or `undefined` if the environment names no folder for it. */
export function profilePath(info: ProcessInfo): string | undefined {
  const { env, platform } = info
  const { isAbsolute, join, resolve } = platform === 'win32' ? paths.win32 : paths
  const given = env.PARLEY_CONFIG_DIR
  // The current folder may be gone, and is asked for only if it is needed.
  if (given) return resolve(isAbsolute(given) ? '' : info.cwd, given, 'config.json')
  /** The XDG specification: a relative path is invalid and must be ignored. */
  const absolute = (path: string | undefined) => (path && isAbsolute(path) ? path : undefined)
  const home = absolute(env.HOME)
  let folder = absolute(env.XDG_CONFIG_HOME) ?? (home && join(home, '.config'))
  if (platform === 'win32') folder = absolute(env.APPDATA)
  if (platform === 'darwin') folder = home && join(home, 'Library', 'Preferences')
  return folder && join(folder, 'parley', 'config.json')
}

/** The same; throws a `CliError` if there is none. */
export function requireProfilePath(info: ProcessInfo): string {
  const path = profilePath(info)
  if (path !== undefined) return path
  const variable = info.platform === 'win32' ? 'APPDATA' : 'HOME'
  throw new CliError(
    'credentials',
    `there is no home folder to keep profiles in: set ${variable} or PARLEY_CONFIG_DIR`,
  )
}

/** A profile file that is there, and may not be read. */
export class UnreadableProfiles extends CliError {}

const unreadable = (path: string, why: string) => new UnreadableProfiles('credentials', `${path}: ${why}`)

/**
 * Reads the profile file; a file that is not there is an empty one. Throws a `CliError` that never quotes it:
 * `UnreadableProfiles` if the user has no right to read it.
 */
export async function readProfiles(info: ProcessInfo, warn: Warn): Promise<ProfileFile> {
  const path = profilePath(info)
  if (path === undefined) return {}
  let bytes: Uint8Array | undefined
  try {
    bytes = readProtected(path, info, warn)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw (hasCode(error, 'EACCES', 'EPERM') ? unreadable : unusable)(path, describeFileError(error))
  }
  return bytes === undefined ? {} : parseProfiles(bytes, path)
}

/** Which file or folder on the way to the profile file somebody else can write, if any. */
export function findOpenPlace(info: ProcessInfo): string | undefined {
  const path = profilePath(info)
  const { uid } = info
  if (path === undefined || uid === undefined) return undefined
  return followLinks(path)
    .flatMap((place) => [place, dirname(place)])
    .find((place) => isOpenToOthers(place, uid))
}

function isOpenToOthers(place: string, uid: number): boolean {
  let stat: Stats
  try {
    stat = statSync(place)
  } catch {
    // What cannot be looked at cannot be read either.
    return false
  }
  if (stat.uid !== uid && stat.uid !== 0) return true
  // In a folder with the sticky bit, as secrets are mounted with, nobody replaces what is another's.
  const isSticky = stat.isDirectory() && (stat.mode & 0o1000) !== 0
  return (stat.mode & 0o022) !== 0 && !isSticky
}

/** Returns the parsed JSON, not zod's copy of it, which would lack a key such as `__proto__`. */
function parseProfiles(bytes: Uint8Array, path: string): ProfileFile {
  let text = ''
  let content: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    content = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw unusable(path, 'not UTF-8 text')
    throw unusable(path, `not valid JSON: ${describeJsonError(text)}`)
  }
  const issue = ProfileFile().safeParse(content).error?.issues[0]
  if (issue) throw unusable(path, `${formatPath(issue.path) || 'the whole'}: ${issue.message}`)
  return content as ProfileFile
}

/** Whether the JSON of a profile file has a command, in any profile, or an escape that may spell one. */
export const mayHoldCommand = (json: string): boolean => /Command"|\\u/.test(json)

const forOthers = 0o077

/**
 * Reads a file of secrets, or returns `undefined` if there is none. If others can read it, its mode becomes 0600 and that
 * of its folder 0700, if both are the user's own; a link or a file of root is read unchanged, with a warning. The right to
 * write stays if there is a command: without it the next run would take a stranger's command for the user's own.
 * Throws a `CliError` for a file of another user, or anything but a file.
 */
function readProtected(path: string, info: ProcessInfo, warn: Warn): Uint8Array | undefined {
  const file = openExisting(path)
  if (file === undefined) return undefined
  try {
    const stat = fstatSync(file)
    if (!stat.isFile())
      throw unusable(path, stat.isDirectory() ? 'it is a folder' : 'it is not a regular file')
    const bytes = readFileSync(file)
    const { uid } = info
    if (uid === undefined) return bytes
    if (stat.uid !== uid && stat.uid !== 0)
      throw unreadable(path, `it belongs to another user (uid ${stat.uid})`)
    const isLinked = findLink(path) !== undefined
    if (isLinked || stat.uid !== uid) {
      const what = isLinked ? 'is reached by a symbolic link' : 'belongs to root'
      warn(`${path}: it ${what}${(stat.mode & forOthers) !== 0 ? ', others can read it' : ''}`)
      return bytes
    }
    const place = mayHoldCommand(bytes.toString('latin1')) ? findOpenPlace(info) : undefined
    const mode = place === undefined ? 0o600 : stat.mode & 0o722
    const now = place && `now only its owner can read it (chmod), but others can still write ${place}`
    if ((stat.mode & forOthers & ~mode) !== 0) tighten(path, () => fchmodSync(file, mode), warn, now)
    if (place === undefined) protectFolder(dirname(path), info, warn)
    return bytes
  } finally {
    closeSync(file)
  }
}

function openExisting(path: string): number | undefined {
  try {
    // Without O_NONBLOCK this would wait for the other end of a named pipe.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    if (lookAt(path)) throw unusable(path, 'it is a symbolic link to nothing')
    return undefined
  }
}

/** A folder that the user chose may have other files in it, so its mode is not changed. */
export function protectFolder(folder: string, { uid, env }: ProcessInfo, warn: Warn): void {
  const stat = lookAt(folder)
  if (env.PARLEY_CONFIG_DIR || stat?.uid !== uid || !stat?.isDirectory()) return
  if ((stat.mode & forOthers) !== 0) tighten(folder, () => chmodSync(folder, 0o700), warn)
}

function tighten(path: string, change: () => void, warn: Warn, now = 'now only its owner has (chmod)'): void {
  try {
    change()
    warn(`${path}: others had access to it: ${now}`)
  } catch (error) {
    warn(`${path}: others have access to it, and chmod fails: ${describeFileError(error)}`)
  }
}

/** The profile file, or its folder, if that is a symbolic link. */
export const findLink = (path: string): string | undefined =>
  [dirname(path), path].find((each) => lookAt(each)?.isSymbolicLink())

export const lookAt = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

/** A place that the profile file cannot have. */
export const unusable = (path: string, why: string) => new CliError('credentials', `${path}: ${why}`)

/** What makes a place that others can write one's own again. */
export const wayToClose = 'look whether its commands are your own, then take that right away (chmod go-w)'
