import { CommanderError, type Option } from 'commander'
import { findFlagValue, hasFlag } from '../argv/bare-flags.ts'
import { FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host } from '../basic-context.ts'
import { type CommandResult, type Context, createContext, type RunContext } from '../context.ts'
import { CliError, OutputClosedError, usageError } from '../errors.ts'
import { createStyle } from '../io/style.ts'
import { rootCommandEntry } from './command-tree.ts'
import {
  checkFlagRules,
  declareRequestFlags,
  isFlagExceptHelp,
  isHelpFlag,
  readSharedFlags,
  sharedFlagRules,
} from './flags.ts'
import { printHelp, wrapHelp } from './help-text.ts'
import { createRootCommand, type ParleyCommand, UnknownNameError } from './parley-command.ts'
import { describeUnknownName } from './unknown-names.ts'

interface ProgramOptions {
  run: RunContext
  /** `disable` prevents a report that would replace a file of another flag. */
  report: { open(): Promise<void>; disable(): void }
}

export async function runProgram(
  argv: string[],
  host: Host,
  options: ProgramOptions,
): Promise<CommandResult> {
  const { stdout, env } = host
  const { columns } = stdout
  const { cleanups, reportData } = options.run
  const root = createRootCommand(rootCommandEntry, columns)
  let help = ''
  const print = (text: string) => {
    help += text
  }
  // commander writes the help of a group to stderr, but parley prints all help on stdout.
  root.configureOutput({ writeOut: print, writeErr: print })
  let called = root

  async function open(command: ParleyCommand): Promise<void> {
    called = command
    if (!command.entry.group) {
      reportData.command = command.commandNames.join(' ')
      return command.load()
    }
    command.enablePositionalOptions()
    // Declaring flags takes time. A group needs the request flags only if one precedes the name of a command,
    // which is rare.
    if (argv.slice(0, command.path.length).some(isFlagExceptHelp)) declareRequestFlags(command)
    command.hook('preSubcommand', (_, child) => open(child as ParleyCommand))
    command.addChildren()
  }

  try {
    await open(root)
    await root.parseAsync(replaceLeadingHelp(argv), { from: 'user' })
  } catch (error) {
    if (error instanceof UnknownNameError) throw usageError(describeUnknownName(error))
    // Without a command, such as in `parley events`, commander prints the help of the group as an error.
    const isGroup = error instanceof CommanderError && error.code === 'commander.help'
    if (!isGroup && !(error instanceof CommanderError && error.exitCode === 0)) throw error
    if (isGroup && called === root && argv.some(isFlagExceptHelp)) throw usageError(noCommand)
    const style = await createStyle(findFlagValue(argv, '--color'), env, stdout.isTerminal)
    const isPaged = !isGroup && !hasFlag(argv, '--no-pager')
    await printHelp({ host, cleanups }, wrapHelp(help, columns, style), isPaged)
    return {}
  }
  return runCommand(called, host, options)
}

async function runCommand(
  command: ParleyCommand,
  host: Host,
  { run, report }: ProgramOptions,
): Promise<CommandResult> {
  const { path, entry, module } = command
  run.tracker.requests = entry.requests
  const flags = readSharedFlags(path)
  if (path.some(({ given }) => given.some(({ option }) => namesFile(option)))) {
    const { describeFileConflict } = await import('./file-conflicts.ts')
    const conflict = describeFileConflict(path, host)
    if (conflict !== undefined) {
      // The file of the report may be one of the two files.
      report.disable()
      throw usageError(conflict)
    }
  }
  await report.open()
  for (const rules of [sharedFlagRules, module?.flagRules ?? {}]) checkFlagRules(command.givenNames, rules)
  const context = await createContext(host, flags, run)
  try {
    const result = await module?.run(context, command.opts() as never, command.args)
    await context.output.flush()
    return result ?? {}
  } catch (error) {
    if (module?.printsFailedBody ?? flags.raw) await printBody(context, error)
    throw error
  }
}

/**
 * Prints the body of a failed response, unless the command has already printed output. A reader would take
 * the body for a part of this output.
 */
async function printBody({ output }: Context, error: unknown): Promise<void> {
  const response = error instanceof CliError ? error.details.response : undefined
  if (!response || output.hasBegun) return
  const { printRawBytes } = await import('../io/raw-printer.ts')
  // If printing fails, parley still reports the failure of the response, which has the status.
  await printRawBytes(output, response.bytes).catch((refusal: unknown) => {
    if (refusal instanceof OutputClosedError) throw refusal
  })
}

/** `parley --help chat` prints the help of chat. */
function replaceLeadingHelp(argv: string[]): string[] {
  const [first = '', ...words] = argv
  return isHelpFlag(first) && words[0]?.startsWith('-') === false ? ['help', ...words] : argv
}

const noCommand = "no command was given: 'parley --help' lists the commands; -V prints the version"

const namesFile = (option: Option) => option instanceof FileFlag || option instanceof TextFlag
