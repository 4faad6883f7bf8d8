import type { CommandEntry } from '../commands/command.ts'
import { usageError } from '../errors.ts'
import { createRootCommand, type ParleyCommand, UnknownNameError } from './parley-command.ts'
import { describeUnknownName } from './unknown-names.ts'

/** Returns `parley`, a group or a command. `isHelp`: the words may also be a topic, for messages. */
export async function loadCommand(
  root: CommandEntry,
  words: readonly string[],
  { isHelp, columns }: { isHelp: boolean; columns: number | undefined },
): Promise<ParleyCommand> {
  let command = createRootCommand(root, columns)
  await command.load()
  for (const [index, word] of words.entries()) {
    const child = command.commands.find((each) => each.name() === word)
    if (!child)
      throw usageError(describeUnknownName(new UnknownNameError(command, words.slice(index)), isHelp))
    await child.load()
    command = child
  }
  return command
}

/** Returns `parley` first, and each group before its commands. */
export const loadAllCommands = (root: CommandEntry): Promise<ParleyCommand[]> =>
  loadAll(createRootCommand(root))

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  await command.load()
  const inner = await Promise.all(command.commands.map(loadAll))
  return [command, ...inner.flat()]
}
