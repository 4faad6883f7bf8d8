import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { demoName, readProfileIfAllowed } from './profiles.ts'
import { type ResolvedSettings, resolveSettings } from './resolve.ts'

/** Reads the settings that apply to a command, from flags, environment and profile. */
export async function readSettings(context: Context): Promise<ResolvedSettings> {
  const { host, flags, note, input } = context
  const profile = await readProfileIfAllowed(host, note, flags.profile)
  const { baseUrl, agentsUrl } = flags.settings
  const address = baseUrl ?? agentsUrl
  if (profile.name === demoName && address) throw usage(`${address.flag}: the demo profile has no network`)
  const settings = resolveSettings({ flags: flags.settings, profile, env: host.env })
  const deadline = deadlineOf(context, settings)
  if (deadline > 0) input.endAt(deadline)
  return settings
}

/** When the run has to be over, in milliseconds since the epoch; 0 for no deadline. */
export const deadlineOf = ({ start }: Context, { values }: Pick<ResolvedSettings, 'values'>): number =>
  values.deadline > 0 ? start + values.deadline * 1000 : 0
