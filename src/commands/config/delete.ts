import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { changeFile, chooseName, demoName, noSuchProfile, profileValues } from '../../settings/profiles.ts'

export function declare(command: Command): void {
  command.argument('<name>', "the profile to delete, with its secrets: 'parley config profiles' lists them")
}

export const examples = ['parley config delete work']

export async function run(context: Context, _: unknown, [name = '']: string[]): Promise<void> {
  if (name === demoName) throw usage(`the profile ${demoName} is built in and cannot be deleted`)
  let wasCurrent = false
  await changeFile(context, (file) => {
    if (profileValues(file, name) === undefined) throw noSuchProfile(file, name)
    const { current, ...rest } = file
    wasCurrent = chooseName(file, { named: undefined, env: {} }).name === name
    const profiles = Object.fromEntries(Object.entries(file.profiles ?? {}).filter(([key]) => key !== name))
    return { ...rest, current: wasCurrent ? undefined : current, profiles }
  })
  if (wasCurrent) context.note(`'${name}' was the current profile; 'parley config use NAME' chooses another`)
  if (context.host.env.PARLEY_PROFILE === name) context.note('PARLEY_PROFILE still names it')
}
