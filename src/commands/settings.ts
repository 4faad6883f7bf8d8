import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { chooseProfile, demoName, readProfiles } from '../settings/profiles.ts'
import { type ResolvedSettings, resolveSettings } from '../settings/resolve.ts'

/** Reads the settings that hold for a command, from wherever they are. */
export async function readSettings({ host, flags, note }: Context): Promise<ResolvedSettings> {
  const file = await readProfiles(host, note)
  const profile = chooseProfile(file, { named: flags.profile, env: host.env })
  const { baseUrl, agentsUrl } = flags.settings
  const address = baseUrl ?? agentsUrl
  if (profile.name === demoName && address) throw usage(`${address.flag}: the demo profile has no network`)
  return resolveSettings({ flags: flags.settings, profile, env: host.env })
}
