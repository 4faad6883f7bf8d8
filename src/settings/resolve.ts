import { CliError } from '../errors.ts'
import { type Settings, schemas } from './schemas.ts'
import { type SettingName, settingNames, settingOf, variableOf } from './table.ts'

/** Where a value came from, most decisive first. */
type Source = 'flag' | 'profile' | 'environment' | 'default'

interface Origin {
  source: Source
  /** As a person would look for it: `--timeout`, `PARLEY_TIMEOUT`, `profile 'work'`. */
  name: string
}

export interface ResolvedSettings {
  values: Settings
  origins: { [K in SettingName]?: Origin }
  /** The chosen profile's name. */
  profile: string
}

/** One place that gives values, unchecked. */
interface Layer {
  source: Source
  values: Partial<Record<SettingName, unknown>>
  nameOf(setting: SettingName): string
}

export interface SettingSources {
  flags: Partial<Record<SettingName, { value: unknown; flag: string }>>
  profile: { name: string; values: Partial<Record<SettingName, unknown>>; isNamed: boolean }
  env: Readonly<Record<string, string | undefined>>
}

/** What belongs to one profile and may not be mixed with the environment's when that profile is named. */
const bound: readonly SettingName[] = ['baseUrl', 'accessToken', 'agentsUrl', 'apiKey', 'workspaceId']

/**
 * Settles every setting in the order of `cli.md`: flag, a profile named by `--profile`, environment, the current
 * profile, default. Throws a `CliError` that names the place of a value that is not valid, never the value.
 */
export function resolveSettings({ flags, profile, env }: SettingSources): ResolvedSettings {
  const flagLayer: Layer = {
    source: 'flag',
    values: Object.fromEntries(Object.entries(flags).map(([name, entry]) => [name, entry?.value])),
    nameOf: (name) => flags[name]?.flag ?? name,
  }
  const profileLayer: Layer = {
    source: 'profile',
    values: profile.values,
    nameOf: () => `profile '${profile.name}'`,
  }
  const environment: Layer = {
    source: 'environment',
    values: Object.fromEntries(
      settingNames
        .filter((name) => !(profile.isNamed && bound.includes(name)))
        .map((name) => [name, env[variableOf(name)] || undefined]),
    ),
    nameOf: variableOf,
  }
  const middle = profile.isNamed ? [profileLayer, environment] : [environment, profileLayer]
  const layers = [flagLayer, ...middle]

  const values: Record<string, unknown> = {}
  const origins: ResolvedSettings['origins'] = {}
  for (const name of settingNames) {
    const layer = layers.find(({ values }) => values[name] !== undefined)
    if (layer) {
      values[name] = check(name, layer)
      origins[name] = { source: layer.source, name: layer.nameOf(name) }
    } else if (settingOf(name).default !== undefined) {
      values[name] = settingOf(name).default
      origins[name] = { source: 'default', name: 'default' }
    }
  }
  return { values: values as Settings, origins, profile: profile.name }
}

function check(name: SettingName, layer: Layer): unknown {
  const parsed = schemas[name].safeParse(layer.values[name])
  if (parsed.success) return parsed.data
  const place = layer.source === 'profile' ? `'${name}' in ${layer.nameOf(name)}` : layer.nameOf(name)
  const isAddress = name === 'baseUrl' || name === 'agentsUrl'
  const kind = layer.source === 'flag' && !isAddress ? 'usage' : 'credentials'
  throw new CliError(kind, `${place} ${parsed.error.issues[0]?.message ?? 'is not valid'}`)
}
