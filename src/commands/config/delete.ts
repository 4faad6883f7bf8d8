import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { demoName, noSuchProfile, profileValues } from '../../settings/profiles.ts'
import { changeFile } from './profile.ts'

export function declare(command: Command): void {
  command.argument('<name>', 'the profile to delete, with its secrets')
}

export async function run(context: Context, _: unknown, [name = '']: string[]): Promise<void> {
  if (name === demoName) throw usage(`the profile ${demoName} is built in and cannot be deleted`)
  let wasCurrent = false
  await changeFile(context, (file) => {
    if (profileValues(file, name) === undefined) throw noSuchProfile(file, name)
    const { current, ...rest } = file
    wasCurrent = current === name
    const profiles = Object.fromEntries(Object.entries(file.profiles ?? {}).filter(([key]) => key !== name))
    return { ...rest, ...(current === undefined || wasCurrent ? {} : { current }), profiles }
  })
  if (wasCurrent) context.note("it was the current profile: now that is 'default'")
}
