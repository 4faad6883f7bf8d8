import { rootEntry } from './command-tree.ts'
import { declareRequestFlags } from './flags.ts'
import { ParleyCommand } from './parley-command.ts'

/**
 * Loads all commands, for the manual page, completion scripts and `help --json`. Returns `parley` first,
 * and each group before its commands.
 */
export function loadCommands(): Promise<ParleyCommand[]> {
  const root = new ParleyCommand('parley').option('-V, --version', 'print the version')
  root.entry = rootEntry
  return loadAll(root)
}

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  // The request flags of a command may precede its name, as in `parley events --raw list`. So the group gets
  // these flags, too.
  if (command.entry.group) declareRequestFlags(command)
  else await command.load()
  command.addChildren()
  const inner = await Promise.all((command.commands as ParleyCommand[]).map(loadAll))
  return [command, ...inner.flat()]
}
