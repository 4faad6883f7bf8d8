import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { settingNames } from '../../settings/table.ts'
import { readSettings } from '../settings.ts'
import { maskValue } from './key.ts'

export function declare(command: Command): void {
  command.option('--effective', 'every value that holds, with where it comes from')
}

export async function run(context: Context, options: { effective?: boolean }): Promise<void> {
  const { values, origins } = await readSettings(context)
  for (const name of settingNames) {
    const origin = origins[name]
    if (!origin || (!options.effective && origin.source !== 'profile')) continue
    const shown = [name, maskValue(name, values[name]), ...(options.effective ? [origin.name] : [])]
    await context.output.write(`${shown.join('\t')}\n`)
  }
}
