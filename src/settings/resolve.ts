import type { Context, FlagSettings } from '../context.ts'
import { CliError } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { type Profile, readProfile, readProfileIfAllowed } from './profiles.ts'
import { anyBetas, type Settings, schemas } from './schemas.ts'
import { type SettingName, secretOfCommand, settingNames, settingOf, settings, variableOf } from './table.ts'

interface Origin {
  source: 'flag' | 'profile' | 'environment' | 'default'
  /** As a person knows it: `--timeout`, `PARLEY_TIMEOUT`, `profile 'work'`. */
  name: string
}

export interface ResolvedSettings {
  values: Settings
  origins: { [K in SettingName]?: Origin }
  /** The chosen profile's name. */
  profile: string
  /** Whether `--profile` chose it. */
  isNamed: boolean
  /** As in `Profile`. */
  openPlace: string | undefined
}

/** A value that was given for a setting, unchecked. */
export interface Candidate {
  setting: SettingName
  value: unknown
  origin: Origin
}

/** Which value applies for a setting, and which others there are. A secret and the command for it are one setting. */
export interface Explanation {
  setting: SettingName
  chosen: Candidate | undefined
  /** What `chosen` overrides, strongest first. */
  overridden: Candidate[]
  /** Those of the environment that never mix with a profile named by `--profile`. */
  ignored: Candidate[]
}

export interface SettingSources {
  flags: FlagSettings
  profile: Omit<Profile, 'chosenBy'>
  env: Readonly<Record<string, string | undefined>>
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

/** Finds for every setting all values that there are, in the order of `README.md`, Your own services. */
function explainSettings({ flags, profile, env }: SettingSources): Explanation[] {
  const fromProfile = layer(
    'profile',
    (setting) => profile.values[setting],
    // A file may have any name, and a message may be printed as it is.
    () => `profile '${oneLine(profile.name, 100)}'`,
  )
  const fromEnvironment = layer('environment', (setting) => env[variableOf(setting)] || undefined, variableOf)
  const layers = [
    layer(
      'flag',
      (setting) => flags[setting]?.value,
      (setting) => flags[setting]?.flag ?? setting,
    ),
    ...(profile.isNamed ? [fromProfile, fromEnvironment] : [fromEnvironment, fromProfile]),
    layer(
      'default',
      (setting) => settingOf(setting).default,
      () => 'default',
    ),
  ]
  const isIgnored = ({ setting, origin }: Candidate) =>
    profile.isNamed && origin.source === 'environment' && bound.includes(setting)

  return settingNames
    .filter((setting) => secretOfCommand[setting] === undefined)
    .map((setting) => {
      const forms = settingNames.filter((name) => name === setting || secretOfCommand[name] === setting)
      const candidates = layers.flatMap((candidatesOf) => forms.flatMap(candidatesOf))
      const [chosen, ...overridden] = candidates.filter((candidate) => !isIgnored(candidate))
      return { setting, chosen, overridden, ignored: candidates.filter(isIgnored) }
    })
}

/** One source of values, as a function that finds its value for a setting. */
function layer(
  source: Origin['source'],
  readValue: (setting: SettingName) => unknown,
  nameOf: (setting: SettingName) => string,
): (setting: SettingName) => Candidate[] {
  return (setting) => {
    const value = readValue(setting)
    return value === undefined ? [] : [{ setting, value, origin: { source, name: nameOf(setting) } }]
  }
}

/**
 * Finds the value of every setting. Throws a `CliError` that names the place of a value that is not valid, never the
 * value.
 */
export function resolveSettings(sources: SettingSources): ResolvedSettings {
  const values: Record<string, unknown> = {}
  const origins: ResolvedSettings['origins'] = {}
  for (const { chosen } of explainSettings(sources)) {
    if (!chosen) continue
    values[chosen.setting] = parseValue(chosen)
    origins[chosen.setting] = chosen.origin
  }
  return {
    values: values as Settings,
    origins,
    profile: sources.profile.name,
    isNamed: sources.profile.isNamed,
    openPlace: sources.profile.openPlace,
  }
}

/** Why a value is not valid, in words that follow its name and never quote a secret. `vendor` is in the names of headers. */
export function problemOf(
  { setting, value }: Pick<Candidate, 'setting' | 'value'>,
  vendor: string = settings.vendor.default,
): string | undefined {
  const issue = schemas[setting]().safeParse(value).error?.issues[0]
  return issue?.message.replace('{vendor}', () => vendor)
}

function parseValue(candidate: Candidate): unknown {
  const { setting, origin, value } = candidate
  if (origin.source === 'default') return value
  const parsed = (setting === 'betas' ? anyBetas : schemas[setting])().safeParse(value)
  if (!parsed.success) requireValid(candidate)
  return parsed.data
}

/** Throws a `CliError` that names the place of a value that is not valid, never the value. */
export function requireValid(candidate: Candidate, vendor?: string): void {
  const { setting, origin } = candidate
  const problem = problemOf(candidate, vendor)
  if (problem === undefined) return
  const place = origin.source === 'profile' ? `'${setting}' in ${origin.name}` : origin.name
  const isAddress = setting === 'baseUrl' || setting === 'agentsUrl'
  const kind = origin.source === 'flag' && !isAddress ? 'usage' : 'credentials'
  throw new CliError(kind, `${place} ${problem}`)
}

/**
 * Reads the chosen profile, and finds out which values apply. For `everything` that does, a profile file may be one that
 * may not be read.
 */
export async function explainProfile(
  { host, flags, note }: Context,
  everything = false,
): Promise<{ profile: Profile; explanations: Explanation[] }> {
  const read = everything ? readProfileIfAllowed : readProfile
  const profile = await read(host, note, flags.profile)
  return { profile, explanations: explainSettings({ flags: flags.settings, profile, env: host.env }) }
}

/** Says when the environment overrides a profile's value. */
export function noteOverride({ note }: Context, explanations: Explanation[], setting: SettingName): void {
  const explanation = explanations.find((each) =>
    [each.chosen, ...each.overridden].some((candidate) => candidate?.setting === setting),
  )
  if (explanation?.chosen?.origin.source === 'environment') {
    note(`${explanation.chosen.origin.name} in the environment overrides it`)
  }
}
