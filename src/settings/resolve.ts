import type { Context, FlagSettings } from '../context.ts'
import { CliError, usage } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { demoName, type Profile, readProfile } from './profiles.ts'
import { anyBetas, type Settings, schemas } from './schemas.ts'
import { type SettingName, secretOfCommand, settingNames, settingOf, variableOf } from './table.ts'

interface Origin {
  source: 'flag' | 'profile' | 'environment' | 'default'
  /** As a person knows it: `--timeout`, `PARLEY_TIMEOUT`, `profile 'work'`. */
  name: string
}

export interface ResolvedSettings {
  values: Settings
  origins: { [K in SettingName]?: Origin }
  profile: Omit<Profile, 'chosenBy'>
}

/** A value for a setting, unchecked. */
export interface Candidate {
  setting: SettingName
  value: unknown
  origin: Origin
}

interface SettingSources {
  flags: FlagSettings
  profile: ResolvedSettings['profile']
  env: Readonly<Record<string, string | undefined>>
}

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

/**
 * Finds the value of every setting. Throws a `CliError` that names the place of a value that is not valid, never the
 * value.
 */
export function resolveSettings(sources: SettingSources): ResolvedSettings {
  const values: Record<string, unknown> = {}
  const origins: ResolvedSettings['origins'] = {}
  for (const chosen of chooseValues(sources)) {
    values[chosen.setting] = parseValue(chosen)
    origins[chosen.setting] = chosen.origin
  }
  return { values: values as Settings, origins, profile: sources.profile }
}

/** Settings that are never taken from the environment when `--profile` names a profile. */
const bound: readonly SettingName[] = [
  'baseUrl',
  'accessToken',
  'accessTokenCommand',
  'agentsUrl',
  'apiKey',
  'apiKeyCommand',
  'workspaceId',
]

/** The value of each setting that has one. A secret and the command for it are one setting. */
export function chooseValues({ flags, profile, env }: SettingSources): Candidate[] {
  // A file may have any name, and a message may be printed as it is.
  const own = { source: 'profile', name: `profile '${oneLine(profile.name, 100)}'` } as const
  const fromProfile = (setting: SettingName) => ({ setting, value: profile.values[setting], origin: own })
  const fromEnvironment = (setting: SettingName): Candidate => {
    const name = variableOf(setting)
    const isForeign = profile.isNamed && bound.includes(setting)
    return { setting, value: (!isForeign && env[name]) || undefined, origin: { source: 'environment', name } }
  }
  const places = [
    (setting: SettingName): Candidate => {
      const { value, flag = setting } = flags[setting] ?? {}
      return { setting, value, origin: { source: 'flag', name: flag } }
    },
    // `README.md`, Your own services.
    ...(profile.isNamed ? [fromProfile, fromEnvironment] : [fromEnvironment, fromProfile]),
    (setting: SettingName): Candidate => {
      return { setting, value: settingOf(setting).default, origin: { source: 'default', name: 'default' } }
    },
  ]
  return settingNames
    .filter((name) => secretOfCommand[name] === undefined)
    .flatMap((name) => {
      const forms = settingNames.filter((form) => form === name || secretOfCommand[form] === name)
      return places.flatMap((place) => forms.map(place)).find(({ value }) => value !== undefined) ?? []
    })
}

/** Why a value is not valid, in words that follow its name and never quote a secret. */
export const problemOf = ({ setting, value }: Pick<Candidate, 'setting' | 'value'>): string | undefined =>
  schemas[setting]().safeParse(value).error?.issues[0]?.message

function parseValue(candidate: Candidate): unknown {
  const { setting, origin, value } = candidate
  if (origin.source === 'default') return value
  const parsed = (setting === 'betas' ? anyBetas : schemas[setting])().safeParse(value)
  if (!parsed.success) requireValid(candidate)
  return parsed.data
}

/** Throws a `CliError` that names the place of a value that is not valid, never the value. */
export function requireValid(candidate: Candidate): void {
  const { setting, origin } = candidate
  const problem = problemOf(candidate)
  if (problem === undefined) return
  const place = origin.source === 'profile' ? `'${setting}' in ${origin.name}` : origin.name
  const isAddress = setting === 'baseUrl' || setting === 'agentsUrl'
  const kind = origin.source === 'flag' && !isAddress ? 'usage' : 'credentials'
  throw new CliError(kind, `${place} ${problem}`)
}
