import { rootEntry } from './command-tree.ts'
import { declareRequestFlags } from './flags.ts'
import { ParleyCommand } from './parley-command.ts'

/** Every command, loaded, for what is written once for all; the first is parley itself, a group comes before its own. */
export function loadCommands(): Promise<ParleyCommand[]> {
  const root = new ParleyCommand('parley').option('-V, --version', 'print the version')
  root.entry = rootEntry
  return loadAll(root)
}

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  // A group takes the flags of its commands, too, before their names.
  if (command.entry.group) declareRequestFlags(command)
  else await command.load()
  command.addChildren()
  const inner = await Promise.all((command.commands as ParleyCommand[]).map(loadAll))
  return [command, ...inner.flat()]
}
