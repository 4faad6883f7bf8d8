import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { changeFile, defaultName, demoName, noSuchProfile, profileValues } from '../../settings/profiles.ts'

export function declare(command: Command): void {
  command.argument('<name>', "the profile to use from now on: 'parley config profiles' lists them")
}

export const examples = ['parley config use work']

export async function run(context: Context, _: unknown, [name = '']: string[]): Promise<void> {
  if (name === demoName) {
    throw usage(`${demoName} is chosen for each call: --profile ${demoName}, or PARLEY_PROFILE=${demoName}`)
  }
  await changeFile(context, (file) => {
    // The default profile can be chosen also before it exists.
    if (profileValues(file, name) === undefined && name !== defaultName) throw noSuchProfile(file, name)
    return { ...file, current: name }
  })
  const { PARLEY_PROFILE } = context.host.env
  if (PARLEY_PROFILE) context.note(`PARLEY_PROFILE (${PARLEY_PROFILE}) overrides it`)
}
