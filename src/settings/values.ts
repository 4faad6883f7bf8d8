import type { Values } from './profile.ts'
import { type SettingName, secretOfCommand, settingNames } from './table.ts'

/** The settings that a value for this one replaces: a secret and the command that prints it exclude each other. */
export const replacedBy = (name: SettingName): string[] =>
  settingNames.filter((other) => secretOfCommand[other] === name || secretOfCommand[name] === other)

/** A profile's values with one more, and without those that it replaces. */
export function withValue(values: Values, name: SettingName, value: unknown): Values {
  const replaced = replacedBy(name)
  const kept = Object.entries(values).filter(([key]) => !replaced.includes(key))
  return { ...Object.fromEntries(kept), [name]: value }
}
