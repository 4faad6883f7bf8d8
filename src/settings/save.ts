import { mkdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import Conf from 'conf'
import lockfile from 'proper-lockfile'
import { CliError, fileProblem } from '../errors.ts'
import { type ProfileFile, readProfiles } from './profiles.ts'

/** Changes the profile file: one writer at a time, written whole or not at all, readable by its owner only. */
export async function changeProfiles(
  path: string | undefined,
  change: (file: ProfileFile) => ProfileFile,
): Promise<void> {
  if (path === undefined) {
    throw new CliError(
      'credentials',
      'there is no home folder to keep profiles in: set HOME or PARLEY_CONFIG_DIR',
    )
  }
  const folder = dirname(path)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const release = await lockfile.lock(path, {
      realpath: false,
      stale: 3000,
      retries: { retries: 200, minTimeout: 20, maxTimeout: 100 },
    })
    try {
      const changed = change(await readProfiles(path))
      const conf = new Conf<ProfileFile>({
        cwd: folder,
        configName: basename(path, '.json'),
        configFileMode: 0o600,
        accessPropertiesByDotNotation: false,
      })
      conf.store = changed
    } finally {
      await release()
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('credentials', `${path}: ${fileProblem(error)}`)
  }
}
