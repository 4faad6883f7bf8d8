import paths from 'node:path'
import type { ProcessInfo } from '../context.ts'
import { CliError } from '../errors.ts'

/** The folder of the profile file, or `undefined` where the environment names none. */
function configFolder(info: ProcessInfo): string | undefined {
  const { env, platform } = info
  const { resolve, isAbsolute } = pathsOf(platform)
  const given = env.PARLEY_CONFIG_DIR
  // The current folder may be gone, and is asked for only if it is needed.
  if (given) return isAbsolute(given) ? resolve(given) : resolve(info.cwd, given)
  const folder = platformFolder(env, platform)
  return folder && pathsOf(platform).join(folder, 'parley')
}

/** The profile file's path, or `undefined` where there is no home folder. */
export function profilePath(info: ProcessInfo): string | undefined {
  const folder = configFolder(info)
  return folder && pathsOf(info.platform).join(folder, 'config.json')
}

/** The same; throws a `CliError` where there is none. */
export function requireProfilePath(info: ProcessInfo): string {
  const path = profilePath(info)
  if (path !== undefined) return path
  const variable = info.platform === 'win32' ? 'APPDATA' : 'HOME'
  throw new CliError(
    'credentials',
    `there is no home folder to keep profiles in: set ${variable} or PARLEY_CONFIG_DIR`,
  )
}

function platformFolder(env: ProcessInfo['env'], platform: NodeJS.Platform): string | undefined {
  const { isAbsolute, join } = pathsOf(platform)
  /** The XDG specification: a relative path is invalid and must be ignored. */
  const absolute = (path: string | undefined) => (path && isAbsolute(path) ? path : undefined)
  if (platform === 'win32') return absolute(env.APPDATA)
  const home = absolute(env.HOME)
  if (platform === 'darwin') return home && join(home, 'Library', 'Preferences')
  return absolute(env.XDG_CONFIG_HOME) ?? (home && join(home, '.config'))
}

const pathsOf = (platform: NodeJS.Platform) => (platform === 'win32' ? paths.win32 : paths)
