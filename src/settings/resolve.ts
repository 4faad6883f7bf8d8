import type { ProcessInfo, SharedFlags } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { toOneLine } from '../io/escape.ts'
import { escapeShellWord } from '../io/shell-quote.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { demoProfileName, type Profile, readProfile } from './profiles.ts'
import { parseSetting, type Settings } from './schemas.ts'
import {
  findSecretPair,
  getSettingDefinition,
  getSettingEnvVar,
  getSettingFlag,
  type SettingName,
  secretSettings,
  settingNames,
} from './table.ts'

interface Origin {
  source: 'flag' | 'profile' | 'environment' | 'default'
  /** Source of the value in messages, such as `--timeout`, `PARLEY_TIMEOUT` or `profile 'work'`. */
  label: string
}

export interface ResolvedSettings {
  values: Settings
  origins: { [K in SettingName]?: Origin }
  profile: Omit<Profile, 'chosenBy'>
  headers: readonly string[]
}

export interface UncheckedSetting {
  setting: SettingName
  value: unknown
  origin: Origin
}

interface SettingSources {
  flags: SharedFlags['settings']
  profile: ResolvedSettings['profile']
  env: ProcessInfo['env']
}

export async function readSettings(context: Context): Promise<ResolvedSettings> {
  const { host, flags, deadline } = context
  const profile = await readProfile(context, true)
  const address = Object.values(addressSettings).find((name) => flags.settings[name] !== undefined)
  if (profile.name === demoProfileName && address)
    throw usageError(
      `${getSettingFlag(address)}: cannot be used with the demo profile, which sends nothing over the network`,
    )
  const resolved = resolveSettings({ flags: flags.settings, profile, env: host.env })
  deadline.moveTo(computeDeadlineMs(context.reportData.startMs, resolved))
  // Headers are read before any other input, so `-H @-` gets stdin.
  const lines = (flags.header ?? []).map((value) => readHeaderLine(value, context))
  return { ...resolved, headers: await Promise.all(lines) }
}

/** Reads the file of `@FILE` or `NAME: @FILE`. Registers the header's value in the file as a secret. */
async function readHeaderLine(given: string, { input, secrets }: Context): Promise<string> {
  const [name = ''] = /^[^@:]*:\s*/.exec(given) ?? []
  const value = given.slice(name.length)
  const line = (name + (await input.readFlagValue(value, '--header'))).trimEnd()
  const isFile = /^@(?!@)/.test(value)
  if (/[\r\n]/.test(line))
    throw usageError(`${isFile ? value : '--header'}: has several lines. Repeat -H, with one header each`)
  if (isFile) secrets.add(line.slice(line.indexOf(':') + 1).trim())
  return line
}

export const computeDeadlineMs = (startMs: number, { values }: Pick<ResolvedSettings, 'values'>): number =>
  values.deadline > 0 ? startMs + values.deadline * 1000 : Infinity

/**
 * Throws a `CliError` for an invalid value. The message names the source of the value. It quotes only the
 * value of a flag, because any other value may be a misplaced secret.
 */
export function resolveSettings(sources: SettingSources): Omit<ResolvedSettings, 'headers'> {
  const values: Record<string, unknown> = {}
  const origins: ResolvedSettings['origins'] = {}
  for (const chosen of chooseSettingValues(sources)) {
    const { setting, value, origin } = chosen
    origins[setting] = origin
    if (origin.source === 'default') values[setting] = value
    else values[setting] = parseValue(chosen)
  }
  return { values: values as Settings, origins, profile: sources.profile }
}

export const addressSettings = { gateway: 'baseUrl', agents: 'agentsUrl' } as const

/**
 * With `--profile`, these settings do not come from the environment, so that each secret goes to the address
 * of its profile.
 */
const profileOnlySettings: readonly SettingName[] = [
  ...Object.values(addressSettings),
  ...Object.values(secretSettings).flat(),
  'workspaceId',
]

export function chooseSettingValues({ flags, profile, env }: SettingSources): UncheckedSetting[] {
  // A name in a profile file may have any length, so messages contain a shortened name.
  const profileSource = `profile '${toOneLine(profile.name, 100)}'`
  const find = (setting: SettingName, source: Origin['source']): UncheckedSetting => {
    const variable = getSettingEnvVar(setting)
    const isProfileOnly = profile.isNamed && profileOnlySettings.includes(setting)
    const [value, label = ''] = {
      flag: [flags[setting], getSettingFlag(setting)],
      profile: [profile.values[setting], profileSource],
      environment: [(!isProfileOnly && env[variable]) || undefined, variable],
      default: [getSettingDefinition(setting).default, 'default'],
    }[source] as [unknown, string?]
    return { setting, value, origin: { source, label } }
  }
  // `README.md` documents this order under "Your own services".
  const order: Origin['source'][] = profile.isNamed
    ? ['flag', 'profile', 'environment', 'default']
    : ['flag', 'environment', 'profile', 'default']
  return settingNames.flatMap((name) => {
    const forms = findSecretPair(name) ?? [name]
    if (forms[0] !== name) return []
    const found = order.flatMap((source) => forms.map((form) => find(form, source)))
    return found.find(({ value }) => value !== undefined) ?? []
  })
}

/** Leaves out a value that may contain a password. */
const formatNameWithValueIfSafe = (name: string, value: string): string =>
  /^\s*$|[@?#]/.test(value) ? name : `${name} ${toOneLine(value, 60)}:`

function parseValue({ setting, value, origin: { source, label } }: UncheckedSetting): unknown {
  const parsed = parseSetting(setting, value)
  if (parsed.problem === undefined) return parsed.value
  const given = source === 'flag' ? formatNameWithValueIfSafe(label, String(value)) : label
  const location = source === 'profile' ? `'${setting}' in ${label}` : given
  const isAddress = setting === 'baseUrl' || setting === 'agentsUrl'
  const kind = source === 'flag' && !isAddress ? 'usage' : 'credentials'
  throw new CliError(kind, `${location} ${parsed.problem}`)
}

export const serviceNames = { gateway: 'the gateway', agents: 'the session service' }

export function findSecretOrigin(
  { origins }: Pick<ResolvedSettings, 'origins'>,
  service: Endpoint['service'],
) {
  const [plain, command] = secretSettings[service]
  return origins[plain] ?? origins[command]
}

/**
 * Returns the flag `--profile` for a printed command, or an empty text if the user did not give the flag. An
 * added flag would change the command, because parley then ignores the addresses and secrets of the
 * environment.
 */
export const formatProfileFlag = ({
  profile: { name, isNamed },
}: Pick<ResolvedSettings, 'profile'>): string => (isNamed ? ` --profile ${escapeShellWord(name)}` : '')

export function describeRefusedSecret(settings: ResolvedSettings, service: Endpoint['service']): string {
  const [plain, command] = secretSettings[service]
  const setting = settings.origins[plain] ? plain : command
  const origin = settings.origins[setting]
  const given = setting === command ? `${setting} COMMAND` : setting
  const hint =
    origin?.source === 'profile'
      ? `, ${setting}: 'parley config set${formatProfileFlag(settings)} ${given}' replaces it`
      : ': change it there'
  return `the refused secret is from ${origin?.label}${hint}`
}
