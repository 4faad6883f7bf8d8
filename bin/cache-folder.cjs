const fs = require('node:fs')
const { dirname, isAbsolute } = require('node:path')

const { platform } = process
const isWindows = platform === 'win32'

/**
 * Returns parley's folder in the user's cache folder, with mode 0700, and creates a missing folder. Returns
 * `undefined` if the folder is not safe: it must belong to the user, and its state before must fulfil `isSafe`.
 * Throws the errors of the file system.
 */
module.exports = function openCacheFolder(env, isSafe = isOfUser) {
  const caches = findCachesFolder(env)
  if (!caches || !isAbsolute(caches)) return undefined
  const folder = `${caches}/parley`
  const missing = [caches, folder].filter((path) => !fs.lstatSync(path, { throwIfNoEntry: false }))
  if (!ownsPathAndTarget(missing.includes(caches) ? dirname(caches) : caches)) return undefined
  // Creates each folder separately, because a recursive mkdir never ends in places such as /proc.
  missing.forEach(makeFolder)
  const stat = fs.lstatSync(folder)
  if (!stat.isDirectory() || !isSafe(stat)) return undefined
  if (!isWindows && stat.mode & 0o077) fs.chmodSync(folder, 0o700)
  return folder
}

/** Another process may create the folder at the same time. */
function makeFolder(path) {
  try {
    fs.mkdirSync(path, 0o700)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
}

/**
 * If the path is a link, checks its target, too. Run by root, parley must not change another user's home, or
 * the target of a link there.
 */
const ownsPathAndTarget = (path) => [fs.lstatSync(path), fs.statSync(path)].every(isOfUser)

/** Windows protects the user's folders, and Node reports no owner there. */
const isOfUser = ({ uid }) => isWindows || uid === process.getuid()

function findCachesFolder(env) {
  if (isWindows) return env.LOCALAPPDATA
  if (env.XDG_CACHE_HOME || !env.HOME) return env.XDG_CACHE_HOME
  return `${env.HOME}/${platform === 'darwin' ? 'Library/Caches' : '.cache'}`
}
