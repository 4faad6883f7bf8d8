import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { demoName, readProfile } from './profiles.ts'
import { type ResolvedSettings, resolveSettings } from './resolve.ts'

/** Reads the settings that apply to a command, from flags, environment and profile. */
export async function readSettings(context: Context): Promise<ResolvedSettings> {
  const { host, flags, limit } = context
  const profile = await readProfile(context, true)
  const { baseUrl, agentsUrl } = flags.settings
  const address = baseUrl ?? agentsUrl
  if (profile.name === demoName && address) throw usage(`${address.flag}: the demo profile has no network`)
  const resolved = resolveSettings({ flags: flags.settings, profile, env: host.env })
  limit.deadline = deadlineOf(context, resolved)
  return resolved
}

/** When the run has to be over, by the forward clock; Infinity for no deadline. */
export const deadlineOf = ({ start }: Context, { values }: Pick<ResolvedSettings, 'values'>): number =>
  values.deadline > 0 ? start + values.deadline * 1000 : Infinity
