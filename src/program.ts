import { type Command, CommanderError } from 'commander'
import { type Entry, entries } from './command-tree.ts'
import { declareGeneralFlags, declareRequestFlags, readSharedFlags } from './commands/flags.ts'
import type { Host, Progress } from './context.ts'
import { createContext } from './create-context.ts'
import { usage } from './errors.ts'
import { explain, ParleyCommand } from './parley-command.ts'
import { say } from './terminal/output.ts'

/**
 * Parses the arguments and runs the command that they name. Returns the exit code; throws a `CliError` of kind
 * `usage` for arguments that are wrong.
 */
export async function runProgram(
  argv: string[],
  host: Host,
  { progress, version }: { progress: Progress; version: string },
): Promise<number> {
  let help = ''
  const print = (text: string) => {
    help += text
  }
  let exitCode = 0

  const root = new ParleyCommand('parley')
    .description('One command for a model gateway and an agent session service.')
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
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText('after', "\nTry it:\n  parley chat --profile demo 'Say hello'\n")
  addEntries(root, entries, [root])

  try {
    await root.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && argv.some(isFlag)) throw usage(noCommand(argv))
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usage(explain(error))
  }
  if (help) await say(host.stdout, help)
  return exitCode

  function addEntries(parent: Command, children: Record<string, Entry>, path: Command[]): void {
    parent.enablePositionalOptions()
    // Most runs give their flags after the command's name, and can do without these.
    if (argv.slice(0, path.length).some(isFlag)) declareRequestFlags(parent)
    for (const option of parent.options) if (option.long !== '--version') option.hideHelp()
    const loaders = new Map<Command, () => Promise<void> | void>()
    parent.hook('preSubcommand', (_, called) => loaders.get(called)?.())
    for (const [name, entry] of Object.entries(children)) {
      const command = parent
        .command(name)
        .summary(entry.summary)
        .description(sentence(entry.summary))
        .helpCommand(false)
      const { group } = entry
      // A group is filled when it is called, for its flags are as many as all that a run needs.
      if (group)
        loaders.set(command, () => addEntries(command.usage('<command> [flags]'), group, [...path, command]))
      else loaders.set(command, () => prepare(command, entry, [...path, command]))
    }
  }

  async function prepare(command: Command, entry: Entry, path: Command[]): Promise<void> {
    const module = await entry.load?.()
    module?.declare(command)
    if (entry.isRequest) declareRequestFlags(command)
    else declareGeneralFlags(command)
    command.action(async () => {
      if (entry === entries.help && !topics.includes(command.args[0] ?? '')) {
        await root.parseAsync(asHelpFlag(command.args), { from: 'user' })
        return
      }
      const context = await createContext(host, readSharedFlags(path), progress)
      if (entry.isRequest) progress.sent = 'no'
      exitCode = (await module?.run(context, command.opts() as never, command.args)) ?? 0
    })
  }
}

const isFlag = (word: string) => word.startsWith('-') && word !== '--help' && word !== '-h'

/** `-v` alone is what people type for a version. */
const noCommand = (argv: string[]): string =>
  argv.includes('-v')
    ? "no command was given: did you mean -V, the version, or 'parley COMMAND -v'?"
    : "no command was given: 'parley --help' lists them"

const topics = ['environment', 'exit-codes', 'profiles', 'input']

/** `help chat` is `chat --help`; an unknown word is left to be refused. */
function asHelpFlag(words: string[]): string[] {
  let level: Record<string, Entry> | undefined = entries
  for (const [index, word] of words.entries()) {
    if (!level) throw usage(`there is no command '${words.join(' ')}'`)
    if (!Object.hasOwn(level, word)) return words.slice(0, index + 1)
    level = level[word]?.group
  }
  return [...words, '--help']
}

const sentence = (summary: string) => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
