import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
} from 'node:fs'
import { dirname } from 'node:path'
import type { ProcessInfo } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'

/** Warns the person of something unusual that does not stop the run. */
export type Warn = (line: string) => void

const forOthers = 0o077

/**
 * Reads a file of secrets, or returns `undefined` where there is none. If others can read it, its mode becomes 0600 and
 * that of its folder 0700, where both are the user's own; a link or a file of root is read unchanged, with a warning.
 * Throws a `CliError` for a file of another user, or anything but a file.
 */
export function readProtected(path: string, info: ProcessInfo, warn: Warn): Uint8Array | undefined {
  const file = openExisting(path)
  if (file === undefined) return undefined
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw failure(path, describeKind(stat))
    if (info.uid !== undefined) protect(path, { file, stat, info, warn })
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

function openExisting(path: string): number | undefined {
  try {
    // Without O_NONBLOCK this would wait for the other end of a named pipe.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    if (lookAt(path)) throw failure(path, 'it is a symbolic link to nothing')
    return undefined
  }
}

interface Opened {
  file: number
  stat: Stats
  info: ProcessInfo
  warn: Warn
}

function protect(path: string, { file, stat, info, warn }: Opened): void {
  const { uid } = info
  if (stat.uid !== uid && stat.uid !== 0) throw failure(path, `it belongs to another user (uid ${stat.uid})`)
  const isOpen = (stat.mode & forOthers) !== 0
  const oddities = [
    ...(lookAt(path)?.isSymbolicLink() ? ['it is a symbolic link'] : []),
    ...(lookAt(dirname(path))?.isSymbolicLink() ? ['its folder is a symbolic link'] : []),
    ...(stat.uid === uid ? [] : ['it belongs to root']),
  ]
  if (oddities.length > 0) {
    warn(`${path}: ${[...oddities, ...(isOpen ? ['others can read it'] : [])].join(', ')}`)
    return
  }
  if (isOpen) tighten(path, () => fchmodSync(file, 0o600), warn)
  protectFolder(dirname(path), info, warn)
}

/** A folder that the user chose may have other files in it, so its mode is not changed. */
function protectFolder(folder: string, { uid, env }: ProcessInfo, warn: Warn): void {
  const stat = lookAt(folder)
  if (env.PARLEY_CONFIG_DIR || stat?.uid !== uid || !stat?.isDirectory()) return
  if ((stat.mode & forOthers) !== 0) tighten(folder, () => chmodSync(folder, 0o700), warn)
}

function tighten(path: string, change: () => void, warn: Warn): void {
  try {
    change()
    warn(`${path}: others had access to it: now only its owner has (chmod)`)
  } catch (error) {
    warn(`${path}: others have access to it, and chmod fails: ${fileProblem(error)}`)
  }
}

/** Makes the folder of a file of secrets. Throws a `CliError` where the file may not be replaced. */
export function prepareProtected(path: string, info: ProcessInfo, warn: Warn): void {
  const folder = dirname(path)
  makeFolder(folder)
  for (const each of [folder, path]) {
    if (lookAt(each)?.isSymbolicLink()) {
      throw failure(each, 'it is a symbolic link: change the file that it points to')
    }
  }
  const stat = lookAt(path)
  if (stat && !stat.isFile()) throw failure(path, describeKind(stat))
  if (stat && info.uid !== undefined && stat.uid !== info.uid) {
    throw failure(path, `it belongs to another user (uid ${stat.uid}), and is not changed`)
  }
  if (info.uid !== undefined) protectFolder(folder, info, warn)
}

/** With its parents. Node's recursive mkdir never returns where a folder cannot be made, as in /proc. */
function makeFolder(folder: string): void {
  if (lookAt(folder)) return
  if (dirname(folder) !== folder) makeFolder(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Another writer may have made it since; its parent is there.
    if (code === 'ENOENT') throw failure(folder, 'no folder can be made there')
    if (code !== 'EEXIST') throw error
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const describeKind = (stat: Stats) => (stat.isDirectory() ? 'it is a folder' : 'it is not a regular file')

const failure = (path: string, why: string) => new CliError('credentials', `${path}: ${why}`)
