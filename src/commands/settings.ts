import type { Context } from '../context.ts'
import { chooseProfile, readProfiles } from '../settings/profiles.ts'
import { type ResolvedSettings, resolveSettings } from '../settings/resolve.ts'

/** Reads the settings that hold for a command, from wherever they are. */
export async function readSettings({ host, flags, note }: Context): Promise<ResolvedSettings> {
  const file = await readProfiles(host, note)
  const profile = chooseProfile(file, { named: flags.profile, env: host.env })
  return resolveSettings({ flags: flags.settings, profile, env: host.env })
}
