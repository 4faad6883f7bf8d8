import { entries } from './command-tree.ts'
import { declareRequestFlags } from './flags.ts'
import { helpFlag, ParleyCommand } from './parley-command.ts'

/** Every command, loaded, for what is written once for all; the first is parley itself, a group comes before its own. */
export function loadCommands(): Promise<ParleyCommand[]> {
  const root = new ParleyCommand('parley')
    .helpCommand(false)
    .optionsGroup('Flags:')
    .helpOption(...helpFlag)
  root.entry = { summary: '', group: entries }
  return loadAll(root.option('-V, --version', 'print the version'))
}

async function loadAll(command: ParleyCommand): Promise<ParleyCommand[]> {
  // A group takes the flags of its commands, too, before their names.
  if (command.entry.group) declareRequestFlags(command)
  else await command.load()
  command.addChildren()
  const inner = await Promise.all((command.commands as ParleyCommand[]).map(loadAll))
  return [command, ...inner.flat()]
}
