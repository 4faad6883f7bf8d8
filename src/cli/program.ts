import { type Command, CommanderError, type Option } from 'commander'
import { flagValue } from '../argv/bare-flags.ts'
import { FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host, Run } from '../context.ts'
import { usage } from '../errors.ts'
import { say } from '../io/output.ts'
import { createStyle, toColourChoice, wantsColour } from '../io/style.ts'
import { entries } from './command-tree.ts'
import { createContext } from './create-context.ts'
import type { Entry, Grammar } from './entry.ts'
import {
  declareGeneralFlags,
  declareRequestFlags,
  isFlag,
  isHelpFlag,
  readSharedFlags,
  requireCompanions,
} from './flags.ts'
import { addExamples, addNote, emboldenHeadings, fold, helpForm } from './help-text.ts'
import { ParleyCommand } from './parley-command.ts'
import type { UnknownWords } from './pointers.ts'
import { topics } from './topics.ts'

/** One parse of the arguments: what the commands need, and what they leave for its end. */
interface Parse extends Grammar {
  readonly argv: string[]
  readonly host: Host
  readonly run: Run
  readonly report: ReportGate
  exitCode: number
  unknown: UnknownWords | undefined
}

/** Decides about the report of a run, which must not take the place of a file that the run needs. */
interface ReportGate {
  /** From here on the report is written, whatever the end of the run. Throws a `CliError` if it cannot be written. */
  open(): Promise<void>
  /** None is written. */
  forgo(): void
}

/**
 * Parses the arguments and runs the command that they name. Returns the exit code; throws a `CliError` of kind
 * `usage` for arguments that are wrong.
 */
export async function runProgram(
  argv: string[],
  host: Host,
  { run, version, report }: Pick<Parse, 'run' | 'report'> & { version: string },
): Promise<number> {
  let help = ''
  const print = (text: string) => {
    help += text
  }
  const root = createRoot(print, host, version)
  const parse: Parse = {
    argv,
    host,
    run,
    report,
    exitCode: 0,
    unknown: undefined,
    showHelp: (words) => showHelp(root, parse, words),
    describe: async (words) => (await import('./help-json.ts')).describeCommand(words),
    findScript: async (shell) => (await import('./completion/scripts.ts')).findScript(shell),
  }
  addCommands(root, entries, parse)
  await parseArguments(root, helpFirst(argv))
  if (parse.unknown) {
    const { describeUnknown } = await import('./pointers.ts')
    throw usage(describeUnknown(parse.unknown, flagValue(argv, '--profile')))
  }
  if (help) await say(host.stdout, await styleHelp(fold(help, host.stdout.columns), parse))
  return parse.exitCode
}

/** `parley --help chat` is help on what comes after it, too. */
function helpFirst(argv: string[]): string[] {
  const [first = '', ...words] = argv
  return isHelpFlag(first) && words[0]?.startsWith('-') === false ? ['help', ...words] : argv
}

async function styleHelp(text: string, { argv, host }: Parse): Promise<string> {
  const isColoured = wantsColour(toColourChoice(flagValue(argv, '--color')), host.env, host.stdout.isTerminal)
  return emboldenHeadings(text, await createStyle(isColoured))
}

async function parseArguments(root: ParleyCommand, argv: string[]): Promise<void> {
  try {
    await root.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && argv.some(isFlag)) throw usage(noCommand)
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usage(explain(error))
  }
}

/** Prints the help of the command that the words name. */
async function showHelp(root: ParleyCommand, parse: Parse, words: string[]): Promise<void> {
  let level: Record<string, Entry> | undefined = entries
  for (const [index, word] of words.entries()) {
    if (!level || !Object.hasOwn(level, word)) {
      parse.unknown = { words: words.slice(0, index + 1), rest: [], isHelp: true }
      return
    }
    level = level[word]?.group
  }
  await root.parseAsync([...words, '--help'], { from: 'user' })
}

const noCommand = "no command was given: 'parley --help' lists them; -V prints the version"

const others = topics.filter((name) => name !== 'settings')

/** `parley` itself: its help page, and how all commands print help and fail. */
function createRoot(print: (text: string) => void, host: Host, version: string): ParleyCommand {
  const root = new ParleyCommand('parley')
  root
    .description(
      `One command for a model gateway and an agent session service. Try it, offline:

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
    .configureHelp({ ...helpForm, subcommandTerm: (command) => command.name() })
    .optionsGroup('Flags:')
    .helpOption('-h, --help', 'print this help')
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
  addNote(root, "Then 'parley config init' asks for your own addresses and credentials.")
  addNote(root, 'Each command has --help. Topics: settings (shared flags),', `${others.join(', ')}.`)
  return root
}

/** Gives a group its commands. What a command or a group needs is loaded when it is called. */
function addCommands(parent: ParleyCommand, children: Record<string, Entry>, parse: Parse): void {
  const path = pathOf(parent)
  parent.enablePositionalOptions()
  // Most runs have their flags after the command's name, and do not need these.
  if (parse.argv.slice(0, path.length).some(isFlag)) declareRequestFlags(parent)
  catchUnknown(parent, parse)
  const loaders = new Map<Command, () => Promise<void> | void>()
  parent.hook('preSubcommand', (_, called) => {
    const load = loaders.get(called)
    // `help help` comes here twice.
    loaders.delete(called)
    return load?.()
  })
  parent.children = children
  for (const [name, entry] of Object.entries(children)) {
    const command = parent
      .command(name)
      .summary(entry.summary)
      .description(sentence(entry.summary))
      .helpCommand(false)
    const { group } = entry
    loaders.set(command, () =>
      group ? addGroup(command, { ...entry, group }, parse) : prepare(command, entry, parse),
    )
  }
}

/** commander reports an unknown word by an event, but before --help it just prints the help of the group. */
function catchUnknown(parent: ParleyCommand, parse: Parse): void {
  const meet = ([word = '-', ...rest]: readonly string[]) => {
    if (!word.startsWith('-')) parse.unknown = { words: [...namesOf(parent), word], rest, isHelp: false }
    return ''
  }
  parent.on('command:*', meet).addHelpText('before', () => meet(parent.args))
}

function addGroup(
  command: ParleyCommand,
  { group, note }: { group: Record<string, Entry>; note?: string },
  parse: Parse,
): void {
  addCommands(command.usage('<command> [flags]'), group, parse)
  const words = ['parley', ...namesOf(command), Object.keys(group)[0], '--help']
  addNote(command, `Each command has help of its own, such as '${words.join(' ')}'.`)
  if (note !== undefined) addNote(command, note)
}

/** Gives a command its flags, its help and its action. */
async function prepare(command: ParleyCommand, entry: Entry, parse: Parse): Promise<void> {
  parse.run.summary.command = namesOf(command).join(' ')
  const module = await entry.load?.()
  module?.declare?.(command)
  for (const note of module?.notes ?? []) addNote(command, note)
  if (module) addExamples(command, module.examples)
  if (entry.isRequest) declareRequestFlags(command)
  else declareGeneralFlags(command)
  addNote(command, entry.isRequest ? sharedOfRequests : sharedOfAll)
  command.usage(command.usage().replace('[options]', '[flags]'))
  command.action(async () => {
    const commands = pathOf(command)
    const flags = readSharedFlags(commands, entry)
    if (commands.some(({ given }) => given.some(({ option }) => namesFile(option))))
      await requireDistinctFiles(commands, parse)
    await parse.report.open()
    requireCompanions(flags.given, module?.companions)
    const context = await createContext(parse.host, flags, parse.run)
    if (entry.sends) parse.run.calls.expectChange()
    parse.exitCode = (await module?.run(context, command.opts() as never, command.args, parse)) ?? 0
    await context.output.flush()
  })
}

const sharedOfAll = "Shared flags: --profile NAME, -q and others: see 'parley help settings'."
const sharedOfRequests = `Shared flags: --profile NAME, --raw, --dry-run, --curl, -H, -q, -v, and each setting (--timeout, --base-url): see 'parley help settings'.`

const namesFile = (option: Option) => option instanceof FileFlag || option instanceof TextFlag

/** Throws a usage error if two flags name one file, and sees to it that no report takes its place. */
async function requireDistinctFiles(commands: ParleyCommand[], { host, report }: Parse): Promise<void> {
  const { findClash } = await import('./named-files.ts')
  const clash = findClash(commands, host)
  if (clash === undefined) return
  report.forgo()
  throw usage(clash)
}

/** The commands from the root to this one. */
const pathOf = (command: ParleyCommand): ParleyCommand[] =>
  command.parent ? [...pathOf(command.parent as ParleyCommand), command] : [command]

const namesOf = (command: ParleyCommand) =>
  pathOf(command)
    .slice(1)
    .map((each) => each.name())

const sentence = (summary: string) => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`

/** What commander says about wrong arguments, in parley's words. */
const explain = ({ message }: CommanderError): string =>
  message
    .replace(/^error: /, '')
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument '(.*)' is invalid\. (?=[^']*$)/s, "$1: '$2' is ")
    .replace(/ is Allowed choices are (.*)\.$/, ' is not one of $1')
    .replace(
      /^command-argument value '(.*)' is invalid for argument '(\w+)'\. Allowed choices are (.*)\.$/s,
      "<$2>: '$1' is not one of $3",
    )
    .replaceAll('\n', ' ')
