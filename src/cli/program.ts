import type { Option } from 'commander'
import { findFlagValue, hasFlag } from '../argv/bare-flags.ts'
import { FileFlag, TextFlag } from '../argv/flags.ts'
import type { HelpSource } from '../commands/command.ts'
import { type CommandResult, type Context, createContext, type Host, type RunContext } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { writeTextToStdout } from '../io/output.ts'
import { createStyle } from '../io/style.ts'
import {
  checkFlagRules,
  declareRequestFlags,
  isFlagExceptHelp,
  isHelpFlag,
  readSharedFlags,
} from './flags.ts'
import { helpLayoutOptions, printHelp, wrapHelp } from './help-text.ts'
import { createRootCommand } from './loaded-commands.ts'
import { type ParleyCommand, UnknownNameError } from './parley-command.ts'
import { describeUnknownName } from './unknown-names.ts'

interface ProgramOptions {
  run: RunContext
  version: string
  /** `disable` prevents a report that would replace a file of another flag. */
  report: { open(): Promise<void>; disable(): void }
}

export interface ProgramResult extends CommandResult {
  exit: number
}

export const runProgram = (argv: string[], host: Host, options: ProgramOptions): Promise<ProgramResult> =>
  new Program(argv, host, options).run()

class Program implements HelpSource {
  readonly #argv: string[]
  readonly #host: Host
  readonly #options: ProgramOptions
  /** True if `parley help` shows the help of a command, so that an unknown word may be a misspelled topic. */
  #isHelpCommand = false

  constructor(argv: string[], host: Host, options: ProgramOptions) {
    this.#argv = argv
    this.#host = host
    this.#options = options
  }

  async run(): Promise<ProgramResult> {
    try {
      const command = await this.#open(this.#argv)
      const [root] = command.path as [ParleyCommand]
      if (root.opts().version) await writeTextToStdout(this.#host.stdout, `${this.#options.version}\n`)
      else if (isHelpRequested(command)) await this.#printHelp(command)
      else if (!command.entry.group) return await this.#runCommand(command)
      else if (command === root && root.given.length > 0) throw usageError(noCommand)
      else await this.#printHelp(command, false)
      return { exit: 0 }
    } catch (error) {
      if (!(error instanceof UnknownNameError)) throw error
      throw usageError(describeUnknownName(error, this.#isHelpCommand))
    }
  }

  async showHelp(words: string[]): Promise<void> {
    this.#isHelpCommand = true
    const command = await this.#open([...words, '--help'])
    if (command.args.length > 0) throw new UnknownNameError(command, command.args)
    await this.#printHelp(command)
  }

  async describe(words: string[]): Promise<object> {
    return (await import('./help-json.ts')).describeCommandForPrograms(words)
  }

  async findCompletionScript(shell: string): Promise<string | undefined> {
    return (await import('./completion/scripts.ts')).findCompletionScript(shell)
  }

  /** Returns the innermost command that the words name. If it is a group, the words name no command of it. */
  async #open(argv: readonly string[]): Promise<ParleyCommand> {
    let command = createRootCommand()
    command.configureHelp({
      ...helpLayoutOptions,
      helpWidth: this.#host.stdout.columns ?? 80,
      subcommandTerm: (each) => each.name(),
    })
    let words = argv
    while (command.entry.group) {
      // Declaring flags takes time. A group needs the request flags only if one precedes the name of a command,
      // which is rare.
      if (isFlagExceptHelp(words.find((word) => !isHelpFlag(word)) ?? '')) declareRequestFlags(command)
      command.addChildren()
      command.readWords(words)
      const [name, ...rest] = command.args
      const child = command.commands.find((each) => each.name() === name)
      if (name === undefined || (!child && command.isHelpGiven)) return command
      if (!child) throw new UnknownNameError(command, command.args)
      command = child as ParleyCommand
      words = rest
    }
    if (!this.#isHelpCommand) this.#options.run.reportData.command = command.commandNames.join(' ')
    await command.load()
    command.readWords(words)
    return command
  }

  async #printHelp(command: ParleyCommand, isPaged = !hasFlag(this.#argv, '--no-pager')): Promise<void> {
    const host = this.#host
    const { stdout, env } = host
    const style = await createStyle(findFlagValue(this.#argv, '--color'), env, stdout.isTerminal)
    const text = wrapHelp(command.helpInformation(), stdout.columns, style)
    await printHelp({ host, cleanups: this.#options.run.cleanups }, text, isPaged)
  }

  async #runCommand(command: ParleyCommand): Promise<ProgramResult> {
    const { path, entry, module } = command
    const { run, report } = this.#options
    const flags = readSharedFlags(path, entry)
    if (path.some(({ given }) => given.some(({ option }) => namesFile(option))))
      await this.#requireDistinctFiles(path)
    await report.open()
    checkFlagRules(flags.given, module?.flagRules)
    const context = await createContext(this.#host, flags, run)
    try {
      const end = await run.tracker.during({ changesData: entry.requests === 'changes' }, async () => {
        const end = (await module?.run(context, command.opts() as never, command.args, this)) ?? 0
        await context.output.flush()
        return end
      })
      return typeof end === 'number' ? { exit: end } : { exit: 0, ...end }
    } catch (error) {
      if (flags.raw && !module?.printsLines) await printBody(context, error)
      throw error
    }
  }

  /**
   * Throws a usage error if two flags or arguments name the same file. Also prevents the report, because the
   * file of the report may be one of the two.
   */
  async #requireDistinctFiles(path: ParleyCommand[]): Promise<void> {
    const { describeFileConflict } = await import('./file-conflicts.ts')
    const conflict = describeFileConflict(path, this.#host)
    if (conflict === undefined) return
    this.#options.report.disable()
    throw usageError(conflict)
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
  await printRawBytes(output, response.bytes)
}

const isHelpRequested = ({ path }: ParleyCommand) => path.some(({ isHelpGiven }) => isHelpGiven)

const noCommand = "no command was given: 'parley --help' lists the commands; -V prints the version"

const namesFile = (option: Option) => option instanceof FileFlag || option instanceof TextFlag
