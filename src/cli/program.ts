import { CommanderError, type Option } from 'commander'
import { findFlagValue, hasFlag } from '../argv/bare-flags.ts'
import { FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host } from '../basic-context.ts'
import { type CommandResult, type Context, createContext, type RunContext } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
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

export interface ProgramResult extends CommandResult {
  exit: number
}

export const runProgram = (argv: string[], host: Host, options: ProgramOptions): Promise<ProgramResult> =>
  new Program(argv, host, options).run()

class Program {
  readonly #argv: string[]
  readonly #host: Host
  readonly #options: ProgramOptions
  #help = ''
  #result: ProgramResult = { exit: 0 }

  constructor(argv: string[], host: Host, options: ProgramOptions) {
    this.#argv = argv
    this.#host = host
    this.#options = options
  }

  async run(): Promise<ProgramResult> {
    const { stdout, env } = this.#host
    const { columns } = stdout
    const print = (text: string) => {
      this.#help += text
    }
    const root = createRootCommand(rootCommandEntry, columns)
    // commander writes the help of a group to stderr, but parley prints all help on stdout.
    root.configureOutput({ writeOut: print, writeErr: print })
    let isPaged = !hasFlag(this.#argv, '--no-pager')
    try {
      this.#openGroup(root)
      await root.parseAsync(replaceLeadingHelp(this.#argv), { from: 'user' })
    } catch (error) {
      // The JSON describes only commands, but the text may also be a topic.
      const isHelp = this.#options.run.reportData.command === 'help' && !hasFlag(this.#argv, '--json')
      if (error instanceof UnknownNameError) throw usageError(describeUnknownName(error, isHelp))
      if (!(error instanceof CommanderError)) throw error
      // Only a group was given, such as `parley events`. Its help is printed without a pager.
      const isGroup = error.code === 'commander.help'
      if (error.exitCode !== 0 && !isGroup) throw error
      if (isGroup && root.args.length === 0 && this.#argv.some(isFlagExceptHelp)) throw usageError(noCommand)
      isPaged &&= !isGroup
    }
    if (this.#help) {
      const style = await createStyle(findFlagValue(this.#argv, '--color'), env, stdout.isTerminal)
      const { cleanups } = this.#options.run
      await printHelp({ host: this.#host, cleanups }, wrapHelp(this.#help, columns, style), isPaged)
    }
    return this.#result
  }

  #openGroup(group: ParleyCommand): void {
    group.enablePositionalOptions()
    // Declaring flags takes time. A group needs the request flags only if one precedes the name of a command,
    // which is rare.
    if (this.#argv.slice(0, group.path.length).some(isFlagExceptHelp)) declareRequestFlags(group)
    group.hook('preSubcommand', (_, called) => this.#open(called as ParleyCommand))
    group.addChildren()
  }

  async #open(command: ParleyCommand): Promise<void> {
    if (command.entry.group) return this.#openGroup(command)
    this.#options.run.reportData.command = command.commandNames.join(' ')
    await command.load()
    command.action(() => this.#runCommand(command))
  }

  async #runCommand(command: ParleyCommand): Promise<void> {
    const { path, entry, module } = command
    const { run, report } = this.#options
    const flags = readSharedFlags(path)
    if (path.some(({ given }) => given.some(({ option }) => namesFile(option))))
      await this.#requireDistinctFiles(path)
    await report.open()
    for (const rules of [sharedFlagRules, module?.flagRules ?? {}]) checkFlagRules(command.givenNames, rules)
    const context = await createContext(this.#host, flags, run)
    try {
      const end = await run.tracker.during({ changesData: entry.requests === 'changes' }, async () => {
        const end = (await module?.run(context, command.opts() as never, command.args)) ?? 0
        await context.output.flush()
        return end
      })
      this.#result = typeof end === 'number' ? { exit: end } : { exit: 0, ...end }
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

/** `parley --help chat` prints the help of chat. */
function replaceLeadingHelp(argv: string[]): string[] {
  const [first = '', ...words] = argv
  return isHelpFlag(first) && words[0]?.startsWith('-') === false ? ['help', ...words] : argv
}

const noCommand = "no command was given: 'parley --help' lists the commands; -V prints the version"

const namesFile = (option: Option) => option instanceof FileFlag || option instanceof TextFlag
