import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { noSuchProfile, profileNames } from '../../settings/profiles.ts'
import { changeFile } from './profile.ts'

export function declare(command: Command): void {
  command.argument('<name>', 'the profile that holds from now on')
}

export async function run(context: Context, _: unknown, [name = '']: string[]): Promise<void> {
  await changeFile(context, (file) => {
    if (!profileNames(file).includes(name)) throw noSuchProfile(file, name)
    return { ...file, current: name }
  })
  const { PARLEY_PROFILE } = context.host.env
  if (PARLEY_PROFILE) context.note(`PARLEY_PROFILE (${PARLEY_PROFILE}) comes before it`)
}
