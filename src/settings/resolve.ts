import type { Context, FlagSettings } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { shellQuote } from '../io/shell-quote.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { defaultName, demoName, type Profile, readProfile } from './profiles.ts'
import { type Settings, schemas } from './schemas.ts'
import { type SettingName, settingNames, settingOf, variableOf } from './table.ts'

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
  if (profile.name === demoName && address)
    throw usageError(`${address.flag}: the demo profile has no network`)
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
    const { setting, value, origin } = chosen
    origins[setting] = origin
    if (origin.source === 'default') values[setting] = value
    else values[setting] = parseValue(chosen)
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
  const own = `profile '${oneLine(profile.name, 100)}'`
  const find = (setting: SettingName, source: Origin['source']): Candidate => {
    const given = flags[setting]
    const variable = variableOf(setting)
    const isForeign = profile.isNamed && bound.includes(setting)
    const [value, name = ''] = {
      flag: [given?.value, given?.flag],
      profile: [profile.values[setting], own],
      environment: [(!isForeign && env[variable]) || undefined, variable],
      default: [settingOf(setting).default, 'default'],
    }[source] as [unknown, string?]
    return { setting, value, origin: { source, name } }
  }
  // `README.md`, Your own services.
  const order: Origin['source'][] = profile.isNamed
    ? ['flag', 'profile', 'environment', 'default']
    : ['flag', 'environment', 'profile', 'default']
  return settingNames
    .filter((name) => !settingOf(name).prints)
    .flatMap((name) => {
      const forms = settingNames.filter((form) => form === name || settingOf(form).prints === name)
      const found = order.flatMap((source) => forms.map((form) => find(form, source)))
      return found.find(({ value }) => value !== undefined) ?? []
    })
}

/** Why a value is not valid, in words that follow its name and never quote a secret. */
export const problemOf = ({ setting, value }: Pick<Candidate, 'setting' | 'value'>): string | undefined =>
  schemas[setting]().safeParse(value).error?.issues[0]?.message

/** Throws a `CliError` that names the place of a value that is not valid, never the value. */
function parseValue({ setting, value, origin: { source, name } }: Candidate): unknown {
  const parsed = schemas[setting]().safeParse(value)
  if (parsed.success) return parsed.data
  const place = source === 'profile' ? `'${setting}' in ${name}` : name
  const isAddress = setting === 'baseUrl' || setting === 'agentsUrl'
  const kind = source === 'flag' && !isAddress ? 'usage' : 'credentials'
  throw new CliError(kind, `${place} ${parsed.error.issues[0]?.message}`)
}

/** A service in a message. */
export const nameOf = { gateway: 'the gateway', agents: 'the session service' }

/** The setting for a service's address. */
export const addressOf = { gateway: 'baseUrl', agents: 'agentsUrl' } as const

/** The settings for a service's secret, and for the command that prints it. */
export const secretsOf = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/** Where a service's secret comes from, or the command that prints it. */
export function secretOriginOf({ origins }: Pick<ResolvedSettings, 'origins'>, service: Endpoint['service']) {
  const [plain, command] = secretsOf[service]
  return origins[plain] ?? origins[command]
}

/** What a command that is printed to be pasted has after its name, so that it uses the same profile. */
export const profileFlag = ({ profile: { name, isNamed } }: Pick<ResolvedSettings, 'profile'>): string =>
  isNamed || name !== defaultName ? ` --profile ${shellQuote(name)}` : ''

/** Says where the refused secret of a service came from, and which command replaces it. */
export function mendSecret(settings: ResolvedSettings, service: Endpoint['service']): string {
  const [plain, command] = secretsOf[service]
  const setting = settings.origins[plain] ? plain : command
  const origin = settings.origins[setting]
  const given = setting === command ? `${setting} COMMAND` : setting
  const way =
    origin?.source === 'profile'
      ? `, ${setting}: 'parley config set${profileFlag(settings)} ${given}' replaces it`
      : ': change it there'
  return `its secret came from ${origin?.name}${way}`
}
