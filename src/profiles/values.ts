import { type SettingName, secretOfCommand, settingNames } from '../settings/table.ts'
import type { Values } from './profile.ts'

/** A secret and the command for it take each other's place. */
export const rivalsOf = (name: SettingName): string[] =>
  settingNames.filter((other) => secretOfCommand[other] === name || secretOfCommand[name] === other)

/** A profile's values with one more, and without what it takes the place of. */
export function withValue(values: Values, name: SettingName, value: unknown): Values {
  const rivals = rivalsOf(name)
  const kept = Object.entries(values).filter(([key]) => !rivals.includes(key))
  return { ...Object.fromEntries(kept), [name]: value }
}
