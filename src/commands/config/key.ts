import { usage } from '../../errors.ts'
import { flagOf, type SettingName, settingNames, settingOf, variableOf } from '../../settings/table.ts'

/** Finds a setting by any of its three spellings. Throws a usage error. */
export function findSetting(spelling: string): SettingName {
  const name = settingNames.find((candidate) =>
    [candidate, flagOf(candidate), flagOf(candidate).slice(2), variableOf(candidate)].includes(spelling),
  )
  if (name === undefined)
    throw usage(`there is no setting '${spelling}': there is ${settingNames.join(', ')}`)
  return name
}

/** A value as it may be shown: a secret by its last four characters only. */
export function maskValue(name: SettingName, value: unknown): string {
  const text = Array.isArray(value) ? value.join(',') : String(value)
  if (!settingOf(name).secret) return text
  return text.length < 12 ? '…' : `…${text.slice(-4)}`
}
