import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { type ListOptions, listProfile } from '../../settings/listing.ts'

export function declare(command: Command): void {
  command.option('--effective', 'every value that applies, and where it comes from')
}

export const notes = ['In a pipe the columns are separated by tabs.']

export const examples = ['parley config list', 'parley config list --effective']

export const run = (context: Context, options: ListOptions): Promise<void> => listProfile(context, options)
