import { chmodSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { ProcessInfo } from '../basic-context.ts'
import { describeFileError, hasErrorCode } from '../errors.ts'

type Surroundings = Omit<ProcessInfo, 'cwd'>

/**
 * Creates parley's folder in the user's cache folder, with mode 0700. Its data may be lost, for example if
 * the user deletes all caches. Throws an error with the reason if the folder cannot be used.
 */
export function openCacheFolder(surroundings: Surroundings): string {
  const caches = findCachesFolder(surroundings)
  if (!caches || !isAbsolute(caches)) {
    const variable = surroundings.platform === 'win32' ? 'LOCALAPPDATA' : 'HOME or XDG_CACHE_HOME'
    throw new Error(`no cache folder: set ${variable} to an absolute path`)
  }
  const folder = join(caches, 'parley')
  try {
    ensureOwned(folder, surroundings)
  } catch (error) {
    throw new Error(`${folder}: ${describeFileError(error)}`)
  }
  return folder
}

function findCachesFolder({ env, platform }: Surroundings): string | undefined {
  if (platform === 'win32') return env.LOCALAPPDATA
  if (env.XDG_CACHE_HOME || !env.HOME) return env.XDG_CACHE_HOME
  return `${env.HOME}/${platform === 'darwin' ? 'Library/Caches' : '.cache'}`
}

function ensureOwned(folder: string, { platform, uid }: Surroundings): void {
  const isOwned = (stat: { uid: number }) => platform === 'win32' || uid === undefined || stat.uid === uid
  const caches = dirname(folder)
  const missing = [caches, folder].filter((path) => !statWithoutFollowing(path))
  // If root runs parley with the HOME of another user, parley must not create a folder there, or in the
  // target of a link.
  const ancestor = missing.includes(caches) ? dirname(caches) : caches
  if (![lstatSync(ancestor), statSync(ancestor)].every(isOwned))
    throw new Error('its parent folder belongs to another user')
  // Creates each folder separately, because Node's recursive mkdir never returns in folders such as /proc.
  for (const path of missing) makePrivateFolder(path)
  const stat = lstatSync(folder)
  if (!stat.isDirectory()) throw new Error('it is not a folder')
  if (!isOwned(stat)) throw new Error('it belongs to another user')
  if (platform !== 'win32' && (stat.mode & 0o077) !== 0) chmodSync(folder, 0o700)
}

export function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    if (!hasErrorCode(error, 'EEXIST')) throw error
  }
}

const statWithoutFollowing = (path: string) => lstatSync(path, { throwIfNoEntry: false })
