import type { Context, FlagSettings, ProcessInfo } from '../context.ts'
import { usage } from '../errors.ts'
import { demoName, type Profile, readProfile, readProfileIfAllowed } from './profiles.ts'
import { type ResolvedSettings, resolveSettings } from './resolve.ts'
import { settings } from './table.ts'

/** Reads the settings that apply to a command, from flags, environment and profile. */
export async function readSettings(context: Context): Promise<ResolvedSettings> {
  const { host, flags, note, limit } = context
  const profile = await readProfileIfAllowed(host, note, flags.profile)
  const { baseUrl, agentsUrl } = flags.settings
  const address = baseUrl ?? agentsUrl
  if (profile.name === demoName && address) throw usage(`${address.flag}: the demo profile has no network`)
  const resolved = resolveSettings({ flags: flags.settings, profile: atHome(profile, host), env: host.env })
  limit.deadline = deadlineOf(context, resolved)
  return resolved
}

/** The word that names of models begin with, for help. A profile that cannot be read has no say. */
export async function readFamily(
  host: ProcessInfo,
  { flags, named }: { flags: FlagSettings; named: string | undefined },
): Promise<string> {
  const { PARLEY_FAMILY } = host.env
  const profile = await readProfile(host, () => {}, named).catch(() => undefined)
  const values = { family: profile?.values.family }
  const sources = {
    flags,
    profile: { name: '', isNamed: false, ...profile, values },
    env: { PARLEY_FAMILY },
  }
  try {
    return resolveSettings(sources).values.family
  } catch {
    return settings.family.default
  }
}

/** The demo shows a person how an answer comes. */
const atHome = (profile: Profile, { stdout }: Pick<Context['host'], 'stdout'>): Profile =>
  profile.name === demoName && stdout.isTerminal
    ? { ...profile, values: { ...profile.values, stream: true } }
    : profile

/** When the run has to be over, by the forward clock; Infinity for no deadline. */
export const deadlineOf = ({ start }: Context, { values }: Pick<ResolvedSettings, 'values'>): number =>
  values.deadline > 0 ? start + values.deadline * 1000 : Infinity
