import type { Context, FlagSettings } from '../context.ts'
import { CliError } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { type Profile, readProfile, replacedBy } from './profiles.ts'
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

/** A value for a setting, unchecked. */
export interface Candidate {
  setting: SettingName
  value: unknown
  origin: Origin
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

/** The value of each setting that has one. A secret and the command for it are one setting. */
function chooseValues(sources: SettingSources): Candidate[] {
  // `README.md`, Your own services.
  const order = sources.profile.isNamed
    ? ['flag', 'profile', 'environment', 'default']
    : ['flag', 'environment', 'profile', 'default']
  return settingNames
    .filter((name) => secretOfCommand[name] === undefined)
    .flatMap((name) => {
      const forms = settingNames.filter((form) => form === name || secretOfCommand[form] === name)
      const [first] = forms
        .flatMap((form) => candidatesFor(form, sources))
        .filter(({ value }) => value !== undefined)
        .sort((one, other) => order.indexOf(one.origin.source) - order.indexOf(other.origin.source))
      return first ?? []
    })
}

function candidatesFor(setting: SettingName, { flags, profile, env }: SettingSources): Candidate[] {
  const variable = variableOf(setting)
  const isForeign = profile.isNamed && bound.includes(setting)
  const { value, flag = setting } = flags[setting] ?? {}
  // A file may have any name, and a message may be printed as it is.
  const own = `profile '${oneLine(profile.name, 100)}'`
  return [
    { setting, value, origin: { source: 'flag', name: flag } },
    { setting, value: profile.values[setting], origin: { source: 'profile', name: own } },
    {
      setting,
      value: (!isForeign && env[variable]) || undefined,
      origin: { source: 'environment', name: variable },
    },
    { setting, value: settingOf(setting).default, origin: { source: 'default', name: 'default' } },
  ]
}

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

/** Reads the profile that applies, and finds the values that do. `isForRun` is meant as of `readProfile`. */
export async function readChosenValues(
  context: Context,
  isForRun?: boolean,
): Promise<{ profile: Profile; chosen: Candidate[] }> {
  const { host, flags } = context
  const profile = await readProfile(context, isForRun)
  return { profile, chosen: chooseValues({ flags: flags.settings, profile, env: host.env }) }
}

/** Says which of the settings that a profile has got now the environment overrides. */
export async function noteOverrides(context: Context, names: readonly SettingName[]): Promise<void> {
  const { chosen } = await readChosenValues(context)
  for (const { setting, origin } of chosen) {
    const isMeant = names.some((name) => name === setting || replacedBy(name).includes(setting))
    if (isMeant && origin.source === 'environment')
      context.note(`${origin.name} in the environment overrides it`)
  }
}
