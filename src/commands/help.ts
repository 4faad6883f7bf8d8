import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { addExamples, fold } from './help-text.ts'
import { topics } from './topics.ts'

export function declare(command: Command): void {
  command.argument('[command...]', `a command, or a topic: ${Object.keys(topics).join(', ')}`)
  addExamples(command, 'parley help events send', 'parley help exit-codes')
}

/** Prints a topic. Help on a command is the command's own (`program.ts`). */
export async function run({ host, output }: Context, _: unknown, [topic = '']: string[]): Promise<void> {
  const { columns } = host.stdout
  await output.write(fold(topics[topic]?.(columns) ?? '', columns))
}
