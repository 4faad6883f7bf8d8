import { Command, CommanderError } from 'commander'
import { declareGeneralFlags, declareRequestFlags, readSharedFlags } from './commands/flags.ts'
import type { Context, Host, Progress } from './context.ts'
import { createContext } from './create-context.ts'
import { usage } from './errors.ts'
import { flagOf, settingNames } from './settings/table.ts'
import { createOutput } from './terminal/output.ts'

/** What a command's module gives: its flags, and what it does. A number is an exit code that is no failure. */
interface CommandModule {
  declare(command: Command): void
  run(context: Context, options: never, words: string[]): Promise<number> | Promise<void>
}

interface Entry {
  summary: string
  /** Sends requests, and so has the flags that every request command has. */
  isRequest?: true
  load?(): Promise<CommandModule>
  group?: Record<string, Entry>
}

const entries: Record<string, Entry> = {
  chat: {
    summary: 'ask a model, print the answer',
    isRequest: true,
    load: () => import('./commands/chat.ts'),
  },
  image: {
    summary: 'make images, save them as files',
    isRequest: true,
    load: () => import('./commands/image.ts'),
  },
  config: {
    summary: 'profiles and credentials',
    group: {
      init: {
        summary: 'ask for everything a profile needs',
        load: () => import('./commands/config/init.ts'),
      },
      set: { summary: 'set a value in a profile', load: () => import('./commands/config/set.ts') },
      get: { summary: 'print a value of a profile', load: () => import('./commands/config/get.ts') },
      unset: { summary: 'remove a value from a profile', load: () => import('./commands/config/unset.ts') },
      list: { summary: 'list the values of a profile', load: () => import('./commands/config/list.ts') },
      use: { summary: 'make a profile the current one', load: () => import('./commands/config/use.ts') },
      profiles: { summary: 'list the profiles', load: () => import('./commands/config/profiles.ts') },
      delete: { summary: 'delete a profile', load: () => import('./commands/config/delete.ts') },
      path: { summary: "print the profile file's path", load: () => import('./commands/config/path.ts') },
    },
  },
  events: {
    summary: 'send events to an agent session, and read them',
    group: {
      send: {
        summary: 'send events to a session',
        isRequest: true,
        load: () => import('./commands/events/send.ts'),
      },
      confirm: {
        summary: 'allow or deny tool uses that a session waits on',
        isRequest: true,
        load: () => import('./commands/events/confirm.ts'),
      },
      list: {
        summary: "read a session's events",
        isRequest: true,
        load: () => import('./commands/events/list.ts'),
      },
      follow: {
        summary: "print a session's events as they happen",
        isRequest: true,
        load: () => import('./commands/events/follow.ts'),
      },
    },
  },
  serve: {
    summary: 'a local emulator of both services, for trying out and testing',
    load: () => import('./commands/serve.ts'),
  },
  help: { summary: 'help on a command or a topic', load: () => import('./commands/help.ts') },
}

/**
 * Parses the arguments and runs the command that they name. Returns the exit code; throws a `CliError` of kind
 * `usage` for arguments that are wrong.
 */
export async function runProgram(
  argv: string[],
  host: Host,
  { progress, version }: { progress: Progress; version: string },
): Promise<number> {
  const output = createOutput(host.stdout)
  const print = (text: string) => void output.write(text).catch(() => {})
  let exitCode = 0

  const root = new ParleyCommand('parley')
    .description('One command for a model gateway and an agent session service.')
    .usage('<command> [flags]')
    .exitOverride()
    // commander sends the help of a bare group to stderr; its errors are printed elsewhere.
    .configureOutput({ writeOut: print, writeErr: print, outputError: () => {} })
    .version(version, '--version', 'print the version')
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText('after', "\nTry it:\n  parley chat --profile demo 'Say hello'\n")
  addEntries(root, entries, [root])

  try {
    await root.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usage(explain(error))
  }
  await output.flush()
  return exitCode

  function addEntries(parent: Command, children: Record<string, Entry>, path: Command[]): void {
    parent.enablePositionalOptions()
    declareRequestFlags(parent)
    for (const option of parent.options) if (option.long !== '--version') option.hideHelp()
    const loaders = new Map<Command, () => Promise<void>>()
    parent.hook('preSubcommand', (_, called) => loaders.get(called)?.())
    for (const [name, entry] of Object.entries(children)) {
      const command = parent
        .command(name)
        .summary(entry.summary)
        .description(sentence(entry.summary))
        .helpCommand(false)
      if (entry.group) addEntries(command.usage('<command> [flags]'), entry.group, [...path, command])
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
      exitCode = (await module?.run(context, command.opts() as never, command.args)) ?? 0
    })
  }
}

/** `config set --base-url …`: there the flag's spelling is the name of a setting. */
const flagAsKey = (word: string) => settingNames.find((name) => flagOf(name) === word) ?? word

/** commander takes whatever follows for a flag's value; here one that begins with a hyphen is not guessed at. */
class ParleyCommand extends Command {
  override createCommand(name?: string): Command {
    return new ParleyCommand(name)
  }

  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    const argv = this.registeredArguments[0]?.name() === 'key' ? words.map(flagAsKey) : words
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!word.startsWith('-') && this.commands.length > 0) break
      if (!option?.required) continue
      const value = argv[++i]
      if (value !== undefined && value.length > 1 && value.startsWith('-')) {
        throw usage(`${word}: a value that begins with a hyphen must be attached: ${option.long}='${value}'`)
      }
    }
    return super.parseOptions(argv)
  }
}

const topics = ['environment', 'exit-codes', 'profiles', 'input']

/** `help chat` is `chat --help`; an unknown word is left to be refused. */
function asHelpFlag(words: string[]): string[] {
  let level: Record<string, Entry> | undefined = entries
  for (const [index, word] of words.entries()) {
    if (!level) throw usage(`there is no command '${words.join(' ')}'`)
    if (level[word] === undefined) return words.slice(0, index + 1)
    level = level[word].group
  }
  return [...words, '--help']
}

const sentence = (summary: string) => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`

function explain({ code, message }: CommanderError): string {
  // What stands after an unknown flag's = may be a secret.
  const text = message
    .replace(/^error: /, '')
    .replace(/'(-[^\s'=]+)=.*'/s, "'$1'")
    .replaceAll('\n', ' ')
  return code === 'commander.unknownOption' ? `${text}; words that begin with a hyphen go after --` : text
}
