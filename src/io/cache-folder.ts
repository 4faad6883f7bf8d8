import type { Host } from '../basic-context.ts'
import { describeFileError } from '../errors.ts'

/** Returns the folder for data that may be lost. Throws an error with the reason if it cannot be used. */
export function requireCacheFolder({ openCacheFolder, env }: Host): string {
  let problem = ''
  try {
    const folder = openCacheFolder?.(env)
    if (folder !== undefined) return folder
  } catch (error) {
    problem = ` (${(error as NodeJS.ErrnoException).path}: ${describeFileError(error)})`
  }
  const variable = 'XDG_CACHE_HOME (on Windows, LOCALAPPDATA)'
  throw new Error(
    `no safe cache folder${problem}: set ${variable} to an absolute path of a folder of your own`,
  )
}
