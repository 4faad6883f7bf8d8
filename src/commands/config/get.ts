import type { Command } from 'commander'
import { SettingArgument } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { escapeControls } from '../../io/escape.ts'
import { readProfile } from '../../settings/profiles.ts'
import { findSetting, formatValue, maskValue } from '../../settings/table.ts'

export function declare(command: Command): void {
  command.addArgument(new SettingArgument()).option('--reveal', 'show the whole secret')
}

export const examples = ['parley config get baseUrl', 'parley config get accessToken --reveal']

export async function run(
  context: Context,
  options: { reveal?: boolean },
  [key = '']: string[],
): Promise<void> {
  const name = findSetting(key)
  const { output } = context
  const profile = await readProfile(context)
  const value = profile.values[name]
  if (value === undefined) {
    throw new CliError('credentials', `${name} is not set in the profile '${profile.name}'`)
  }
  const shown = options.reveal ? formatValue(value) : maskValue(name, value)
  await output.write(`${output.isTerminal ? escapeControls(shown) : shown}\n`)
}
