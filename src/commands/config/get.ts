import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { readSettings } from '../settings.ts'
import { findSetting, maskValue } from './key.ts'

export function declare(command: Command): void {
  command.argument('<key>', 'a setting').option('--reveal', 'show a secret whole')
}

export async function run(
  context: Context,
  options: { reveal?: boolean },
  [key = '']: string[],
): Promise<void> {
  const name = findSetting(key)
  const { values, profile } = await readSettings(context)
  const value = values[name]
  if (value === undefined) throw new CliError('credentials', `${name} is not set in the profile '${profile}'`)
  await context.output.write(`${options.reveal ? value : maskValue(name, value)}\n`)
}
