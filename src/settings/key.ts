import { didYouMean } from '../argv/spelling.ts'
import { usage } from '../errors.ts'
import { flagOf, type SettingName, settingNames, settingOf, variableOf } from './table.ts'

/** Finds a setting by any of its spellings: `baseUrl`, `--base-url`, `PARLEY_BASE_URL`. Throws a usage error. */
export function findSetting(spelling: string): SettingName {
  const wanted = bare(spelling)
  const name = settingNames.find((candidate) => bare(candidate) === wanted)
  if (name) return name
  const hint = didYouMean(spelling, [
    ...settingNames,
    ...settingNames.map(flagOf),
    ...settingNames.map(variableOf),
  ])
  throw usage(`unknown setting '${spelling}'${hint}; 'parley help settings' lists them`)
}

const bare = (spelling: string) =>
  spelling
    .replace(/^(--|PARLEY_)/, '')
    .replace(/[-_]/g, '')
    .toLowerCase()

/** A value as it may be shown: a secret by its last four characters only. */
export function maskValue(name: SettingName, value: unknown): string {
  const text = formatValue(value)
  if (!settingOf(name).secret) return text
  return text.length < 8 ? '…' : `…${text.slice(-4)}`
}

/** A value as `config set` and the environment accept it. */
export function formatValue(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
