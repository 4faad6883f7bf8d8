import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { Grammar } from './entry.ts'
import { fold } from './help-text.ts'
import { topics } from './topics.ts'

export function declare(command: Command): void {
  command.argument('[command...]', `a command, or a topic: ${Object.keys(topics).join(', ')}`)
}

export const examples = ['parley help events send', 'parley help exit-codes']

/** Prints a topic, or the help of a command. */
export async function run(
  { host, output }: Context,
  _: unknown,
  words: string[],
  { showHelp }: Grammar,
): Promise<void> {
  const [name = ''] = words
  const topic = Object.hasOwn(topics, name) ? topics[name] : undefined
  if (!topic) return showHelp(words)
  const { columns } = host.stdout
  const write = await topic()
  await output.write(fold(write(columns), columns))
}
