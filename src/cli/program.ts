import { type Command, CommanderError } from 'commander'
import type { Host, Run } from '../context.ts'
import { usage } from '../errors.ts'
import { say } from '../io/output.ts'
import { entries } from './command-tree.ts'
import { createContext } from './create-context.ts'
import type { Entry } from './entry.ts'
import { declareGeneralFlags, declareRequestFlags, pointToSharedFlags, readSharedFlags } from './flags.ts'
import { addExamples, addNote, fold } from './help-text.ts'
import { explain, type ParleyCommand } from './parley-command.ts'
import { createRoot } from './root-command.ts'

/**
 * Parses the arguments and runs the command that they name. Returns the exit code; throws a `CliError` of kind
 * `usage` for arguments that are wrong.
 */
export async function runProgram(
  argv: string[],
  host: Host,
  { run, version }: { run: Run; version: string },
): Promise<number> {
  let help = ''
  const print = (text: string) => {
    help += text
  }
  let exitCode = 0
  /** Words that name no command. */
  let stranger: { words: string[]; isHelp: boolean } | undefined

  const root = createRoot(print, host, version)
  addEntries(root, entries, [root])

  try {
    await root.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && argv.some(isFlag)) throw usage(noCommand(argv))
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usage(explain(error))
  }
  if (stranger) {
    const { describeStranger } = await import('./pointers.ts')
    throw usage(describeStranger(stranger.words, stranger.isHelp))
  }
  if (help) await say(host.stdout, fold(help, host.stdout.columns))
  return exitCode

  function addEntries(parent: ParleyCommand, children: Record<string, Entry>, path: Command[]): void {
    parent.enablePositionalOptions()
    // Most runs give their flags after the command's name, and can do without these.
    if (argv.slice(0, path.length).some(isFlag)) declareRequestFlags(parent)
    const meet = ([word = '-']: readonly string[]) => {
      if (!word.startsWith('-')) stranger = { words: [...namesOf(path), word], isHelp: false }
      return ''
    }
    parent.on('command:*', meet).addHelpText('before', () => meet(parent.args))
    const loaders = new Map<Command, () => Promise<void> | void>()
    parent.hook('preSubcommand', (_, called) => {
      const load = loaders.get(called)
      // `help help` comes here twice.
      loaders.delete(called)
      return load?.()
    })
    for (const [name, entry] of Object.entries(children)) {
      const command = parent
        .command(name)
        .summary(entry.summary)
        .description(sentence(entry.summary))
        .helpCommand(false)
      const { group } = entry
      // A group is filled when it is called, for its flags are as many as all that a run needs.
      if (group) loaders.set(command, () => addGroup(command, group, [...path, command]))
      else loaders.set(command, () => prepare(command, entry, [...path, command]))
    }
  }

  async function showHelp(words: string[]): Promise<void> {
    let level: Record<string, Entry> | undefined = entries
    for (const [index, word] of words.entries()) {
      if (!level || !Object.hasOwn(level, word)) {
        stranger = { words: words.slice(0, index + 1), isHelp: true }
        return
      }
      level = level[word]?.group
    }
    await root.parseAsync([...words, '--help'], { from: 'user' })
  }

  function addGroup(command: ParleyCommand, group: Record<string, Entry>, path: Command[]): void {
    addEntries(command.usage('<command> [flags]'), group, path)
    const words = ['parley', ...namesOf(path), Object.keys(group)[0], '--help']
    addNote(command, `'${words.join(' ')}' shows the flags and examples of one of them.`)
  }

  async function prepare(command: ParleyCommand, entry: Entry, path: Command[]): Promise<void> {
    const module = await entry.load?.()
    module?.declare?.(command)
    for (const note of module?.notes ?? []) addNote(command, note)
    if (module) addExamples(command, module.examples)
    if (entry.isRequest) declareRequestFlags(command)
    else declareGeneralFlags(command)
    pointToSharedFlags(command, entry.isRequest ?? false)
    command.namesSetting = entry.namesSetting ?? false
    command.usage(command.usage().replace('[options]', '[flags]'))
    command.action(async () => {
      const context = await createContext(host, readSharedFlags(path), run)
      if (entry.sends) run.whenInterrupted(() => 'nothing was sent')
      exitCode = (await module?.run(context, command.opts() as never, command.args, { showHelp })) ?? 0
    })
  }
}

const isFlag = (word: string) => word.startsWith('-') && word !== '--help' && word !== '-h'

/** `-v` alone is what people type for a version. */
const noCommand = (argv: string[]): string =>
  argv.includes('-v')
    ? "no command was given: did you mean -V, the version, or 'parley COMMAND -v'?"
    : "no command was given: 'parley --help' lists them"

const namesOf = (path: Command[]) => path.slice(1).map((command) => command.name())

const sentence = (summary: string) => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
