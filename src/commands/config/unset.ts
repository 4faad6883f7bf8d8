import type { Command } from 'commander'
import { SettingArgument } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { changeProfile } from '../../settings/profiles.ts'
import { findSetting } from '../../settings/table.ts'

export function declare(command: Command): void {
  command.addArgument(new SettingArgument())
}

export const examples = ['parley config unset accessToken']

export async function run(context: Context, _: unknown, [key = '']: string[]): Promise<void> {
  const name = findSetting(key)
  let wasSet = false
  const profile = await changeProfile(context, ({ [name]: value, ...rest }) => {
    wasSet = value !== undefined
    return wasSet ? rest : undefined
  })
  if (!wasSet) context.note(`${name} was not set in the profile '${profile}'`)
}
