import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { topics } from './topics.ts'

export function declare(command: Command): void {
  command.argument('[command...]', `a command, or one of ${Object.keys(topics).join(', ')}`)
}

/** Prints a topic. Help on a command is the command's own (`program.ts`). */
export async function run({ output }: Context, _: unknown, [topic = '']: string[]): Promise<void> {
  await output.write(topics[topic]?.() ?? '')
}
