import { rootEntry } from './command-tree.ts'
import { declareRequestFlags } from './flags.ts'
import { ParleyCommand } from './parley-command.ts'

/**
 * For the manual page, completion scripts and `help --json`. Returns `parley` first, and each group before
 * its commands.
 */
export function loadCommands(): Promise<ParleyCommand[]> {
  const root = new ParleyCommand('parley').option('-V, --version', 'print the version')
  root.entry = rootEntry
  return loadAll(root)
}

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  // A group also accepts the request flags of its commands: `parley events --raw list`.
  if (command.entry.group) declareRequestFlags(command)
  else await command.load()
  command.addChildren()
  const inner = await Promise.all((command.commands as ParleyCommand[]).map(loadAll))
  return [command, ...inner.flat()]
}
