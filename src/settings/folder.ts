import { isAbsolute, join, resolve } from 'node:path'

/** What decides where the profile file lies. */
export interface Place {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  platform: NodeJS.Platform
}

/** The folder of the profile file, or `undefined` where the environment tells of none. */
export function configFolder({ env, cwd, platform }: Place): string | undefined {
  if (env.PARLEY_CONFIG_DIR) return resolve(cwd, env.PARLEY_CONFIG_DIR)
  const folder = platformFolder(env, platform)
  return folder && join(folder, 'parley')
}

function platformFolder(env: Place['env'], platform: NodeJS.Platform): string | undefined {
  if (platform === 'win32') return absolute(env.APPDATA)
  const home = absolute(env.HOME)
  if (platform === 'darwin') return home && join(home, 'Library', 'Preferences')
  return absolute(env.XDG_CONFIG_HOME) ?? (home && join(home, '.config'))
}

/** The XDG specification: a relative path is invalid and must be ignored. */
const absolute = (path: string | undefined): string | undefined =>
  path && isAbsolute(path) ? path : undefined
