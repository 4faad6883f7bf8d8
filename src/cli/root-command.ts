import type { Host } from '../context.ts'
import { addNote, minWidthToWrap } from './help-text.ts'
import { ParleyCommand } from './parley-command.ts'
import { topics } from './topics.ts'

const others = topics.filter((name) => name !== 'settings')

/** `parley` itself: its help page, and how all commands print help and fail. */
export function createRoot(print: (text: string) => void, host: Host, version: string): ParleyCommand {
  const root = new ParleyCommand('parley')
  root
    .description(
      `One command for a model gateway and an agent session service. Try it, without an account or a network:

  parley chat --profile demo 'Say hello'`,
    )
    .usage('<command> [flags]')
    .exitOverride()
    // commander sends the help of a bare group to stderr; its errors are printed elsewhere.
    .configureOutput({
      writeOut: print,
      writeErr: print,
      outputError: () => {},
      getOutHelpWidth: () => host.stdout.columns as number,
      getErrHelpWidth: () => host.stdout.columns as number,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ subcommandTerm: (command) => command.name(), minWidthToWrap })
    .optionsGroup('Flags:')
    .helpOption('-h, --help', 'print this help')
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
  addNote(root, "Then 'parley config init' asks for your own addresses and credentials.")
  addNote(
    root,
    "Each command has --help. Topics of 'parley help': settings (and shared flags),",
    `${others.join(', ')}.`,
  )
  return root
}
