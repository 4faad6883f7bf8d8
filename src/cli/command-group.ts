import type { Command, Option } from 'commander'
import { FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host, Run } from '../context.ts'
import { usage } from '../errors.ts'
import { createContext } from './create-context.ts'
import type { Entry, Grammar } from './entry.ts'
import {
  declareGeneralFlags,
  declareRequestFlags,
  isFlag,
  pointToSharedFlags,
  readSharedFlags,
} from './flags.ts'
import { addExamples, addNote } from './help-text.ts'
import type { ParleyCommand } from './parley-command.ts'
import type { UnknownWords } from './pointers.ts'

/** One parse of the arguments: what the commands need, and what they leave for its end. */
export interface Parse extends Grammar {
  readonly argv: string[]
  readonly host: Host
  readonly run: Run
  readonly report: ReportGate
  exitCode: number
  unknown: UnknownWords | undefined
}

/** Decides about the report of a run, which must not take the place of a file that the run needs. */
interface ReportGate {
  /** From here on the report is written, whatever the end of the run. Throws a `CliError` where it cannot be written. */
  open(): Promise<void>
  /** None is written. */
  forgo(): void
}

/** Gives a group its commands. What a command or a group needs is loaded when it is called. */
export function addCommands(parent: ParleyCommand, children: Record<string, Entry>, parse: Parse): void {
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
  for (const [name, entry] of Object.entries(children)) {
    const command = parent
      .command(name)
      .summary(entry.summary)
      .description(sentence(entry.summary))
      .helpCommand(false)
    const { group } = entry
    loaders.set(command, () => (group ? addGroup(command, group, parse) : prepare(command, entry, parse)))
  }
}

/** commander reports an unknown word by an event, but before --help it just prints the help of the group. */
function catchUnknown(parent: ParleyCommand, parse: Parse): void {
  const meet = ([word = '-']: readonly string[]) => {
    if (!word.startsWith('-')) parse.unknown = { words: [...namesOf(parent), word], isHelp: false }
    return ''
  }
  parent.on('command:*', meet).addHelpText('before', () => meet(parent.args))
}

function addGroup(command: ParleyCommand, group: Record<string, Entry>, parse: Parse): void {
  addCommands(command.usage('<command> [flags]'), group, parse)
  const words = ['parley', ...namesOf(command), Object.keys(group)[0], '--help']
  addNote(command, `'${words.join(' ')}' shows the flags and examples of one of them.`)
}

/** Gives a command its flags, its help and its action. */
async function prepare(command: ParleyCommand, entry: Entry, parse: Parse): Promise<void> {
  parse.run.facts.command = namesOf(command).join(' ')
  const module = await entry.load?.()
  module?.declare?.(command)
  for (const note of module?.notes ?? []) addNote(command, note)
  if (module) addExamples(command, module.examples)
  if (entry.isRequest) declareRequestFlags(command)
  else declareGeneralFlags(command)
  pointToSharedFlags(command, entry.isRequest ?? false)
  command.usage(command.usage().replace('[options]', '[flags]'))
  command.action(async () => {
    const commands = pathOf(command)
    const flags = readSharedFlags(commands)
    if (commands.some(({ given }) => given.some(({ option }) => namesFile(option))))
      await requireDistinctFiles(commands, parse)
    await parse.report.open()
    const context = await createContext(parse.host, flags, parse.run)
    if (entry.sends) parse.run.calls.sayInstead(() => 'nothing was sent')
    parse.exitCode = (await module?.run(context, command.opts() as never, command.args, parse)) ?? 0
  })
}

const namesFile = (option: Option) => option instanceof FileFlag || option instanceof TextFlag

/** Throws a usage error where two flags name one file, and sees to it that no report takes its place. */
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
