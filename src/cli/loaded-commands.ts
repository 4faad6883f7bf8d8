import { rootCommandEntry } from './command-tree.ts'
import { declareRequestFlags } from './flags.ts'
import { ParleyCommand } from './parley-command.ts'

/** Returns `parley` first, and each group before its commands. */
export function loadAllCommands(): Promise<ParleyCommand[]> {
  const root = new ParleyCommand('parley').option('-V, --version', 'print the version')
  root.entry = rootCommandEntry
  return loadAll(root)
}

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  // Request flags may precede the name of a command, as in `parley events --raw list`, so the group has them,
  // too.
  if (command.entry.group) declareRequestFlags(command)
  else await command.load()
  command.addChildren()
  const inner = await Promise.all((command.commands as ParleyCommand[]).map(loadAll))
  return [command, ...inner.flat()]
}
