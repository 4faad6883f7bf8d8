import { Argument, Command, Option } from 'commander'
import { version } from '../../package.json'
import { looksLikeFlag } from '../argv/bare-flags.ts'
import { appendFlagValue, HeaderFlag } from '../argv/flags.ts'
import type { CommandEntry, CommandModule } from '../commands/command.ts'
import { usageError } from '../errors.ts'
import {
  declareGeneralFlags,
  declareRequestFlags,
  type GivenFlag,
  isHelpFlag,
  isSharedFlag,
} from './flags.ts'
import { helpLayoutOptions } from './help-text.ts'
import { isKnownFlag } from './hints.ts'

/** Thrown if the first of `words` is an unknown word or flag. `Program` adds a suggestion to the message. */
export class UnknownNameError extends Error {
  readonly command: ParleyCommand
  readonly words: readonly string[]

  constructor(command: ParleyCommand, words: readonly string[]) {
    super()
    this.command = command
    this.words = words
  }
}

const generalFlagsNote = "Shared flags: --profile NAME, -q and others: see 'parley help settings'."
const requestFlagsNote =
  "Shared flags: --profile NAME, --raw, --dry-run, --curl, -H, -q, -v, and flags for most settings, such as --timeout: see 'parley help settings'."

const helpFlag = ['-h, --help', 'print this help'] as const

/**
 * commander would take a following flag as a value. So a value that begins with a hyphen must be attached,
 * as in `--system=-x`.
 */
export class ParleyCommand extends Command {
  declare readonly commands: readonly ParleyCommand[]
  declare parent: ParleyCommand | null
  entry: CommandEntry = { summary: '' }
  /** `undefined` for a group, and before `load`. */
  module: CommandModule | undefined
  readonly given: GivenFlag[] = []
  readonly repeatableFlags = new Set<Option>()

  constructor(name?: string) {
    super(name)
    this.optionsGroup('Flags:')
      .helpCommand(false)
      .helpOption(...helpFlag)
  }

  override createCommand(name?: string): ParleyCommand {
    return new ParleyCommand(name)
  }

  addChildren(): void {
    for (const [name, entry] of Object.entries(this.entry.group ?? {})) {
      const { summary, group } = entry
      const command = this.command(name)
        .summary(summary)
        .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      if (group) command.usage('<command> [flags]')
      command.entry = entry
    }
  }

  async load(): Promise<void> {
    const { load, requests, group } = this.entry
    this.module = (await load?.())?.default
    for (const each of this.module?.parameters?.() ?? [])
      if (each instanceof Argument) this.addArgument(each)
      else this.addOption(each)
    // Request flags may precede the name of a command, as in `parley events --raw list`, so a group has them,
    // too.
    if (requests || group) declareRequestFlags(this)
    else declareGeneralFlags(this)
    this.addChildren()
    this.usage(this.usage().replace('[options]', '[flags]'))
  }

  get path(): ParleyCommand[] {
    return this.parent ? [...this.parent.path, this] : [this]
  }

  get commandNames(): string[] {
    return this.path.slice(1).map((command) => command.name())
  }

  /** Names for `FlagRules`. */
  get givenNames(): string[] {
    return [
      this.commandNames.join(' '),
      ...this.path.flatMap(({ given }) => given.map(({ flag }) => flag)),
      ...this.registeredArguments.slice(0, this.args.length).map((each) => each.name().toUpperCase()),
    ]
  }

  get longFlags(): string[] {
    return this.options.flatMap(({ long }) => long ?? [])
  }

  get ownFlags(): Option[] {
    return [...this.options.filter((option) => !isSharedFlag(option)), new Option(...helpFlag)]
  }

  get sharedFlags(): Option[] {
    return this.options.filter(isSharedFlag)
  }

  override addOption(option: Option): this {
    const flag = option.long ?? ''
    if (option.parseArg === appendFlagValue) this.repeatableFlags.add(option)
    shortenParseErrors(option, flag)
    return super.addOption(option).on(`option:${option.name()}`, (value?: string | null) => {
      this.given.push({ option, flag, value: value ?? undefined })
    })
  }

  override addArgument(argument: Argument): this {
    shortenParseErrors(argument, `<${argument.name()}>`)
    return super.addArgument(argument)
  }

  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    this.checkFlags(words)
    const parsed = super.parseOptions(words)
    this.checkWords(parsed)
    return parsed
  }

  private checkWords({ operands, unknown }: { operands: string[]; unknown: string[] }): void {
    const isGroup = this.commands.length > 0
    const [word = ''] = operands
    if (isGroup && operands.length > 0 && !this.commands.some((command) => command.name() === word))
      throw new UnknownNameError(this, operands)
    if (unknown.some(isHelpFlag)) return
    if (unknown.length > 0 && (!isGroup || operands.length === 0)) throw new UnknownNameError(this, unknown)
    if (isGroup) return
    const all = this.registeredArguments
    const { length: most } = all
    for (const [at, argument] of all.entries()) {
      const word = operands[at]
      // commander would report a missing argument instead of an invalid word before it.
      if (word !== undefined) argument.parseArg?.(word, undefined)
      else if (argument.required)
        throw usageError(
          `the argument <${argument.name()}> is missing: ${formatChoices(argument) ?? argument.description}`,
        )
    }
    const isOpen = all.at(-1)?.variadic ?? false
    const taken = `takes ${most === 0 ? 'none' : most}, and got ${operands.length}`
    const isSession = most === 0 && hasSessionFlag(this) && /^[\w-]+$/.test(word)
    if (!isOpen && operands.length > most)
      throw usageError(
        `too many arguments: '${this.commandNames.join(' ')}' ${taken}${isSession ? `; -s ${word} names a session` : ''}`,
      )
  }

  /**
   * True if the words `true` and `false` may belong to a prompt. In `config set`, they are the value of a
   * setting.
   */
  private get acceptsText(): boolean {
    return this.registeredArguments.some(({ variadic }) => variadic)
  }

  /** Throws a usage error for a flag that commander would misread. */
  private checkFlags(argv: string[]): void {
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      if (!word.startsWith('-') && this.commands.length > 0) break
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!option) checkAttachedValue(word, this)
      else if (!option.required && this.acceptsText) checkToggle(option, argv[i + 1], this)
      if (!option?.required) continue
      const value = argv[++i]
      const choices = formatChoices(option)
      if (value === undefined)
        throw usageError(`${option.long} needs a value${choices ? `: ${choices}` : ''}`)
      if (looksLikeFlag(value)) {
        throw usageError(`${word} needs a value; if the value is '${value}', write ${option.long}='${value}'`)
      }
    }
  }

  /**
   * The many shared flags would hide the command's own flags. So the help of a command omits the shared
   * flags, and the topic `settings` lists them.
   */
  override helpInformation(context?: { error: boolean }): string {
    for (const option of this.sharedFlags) option.hideHelp()
    return super.helpInformation(context) + this.notes.map((note) => `\n${note}\n`).join('')
  }

  private get notes(): string[] {
    const { group, notes = [], requests } = this.entry
    if (!this.parent) return [...notes]
    if (group) {
      const first = ['parley', ...this.commandNames, Object.keys(group)[0], '--help'].join(' ')
      return [`Each command has its own help, such as '${first}'.`, ...notes]
    }
    const { notes: own = [], examples = [] } = this.module ?? {}
    const lines = examples.map((example) => `\n  ${example}`)
    return [...own, `Examples:${lines.join('')}`, requests ? requestFlagsNote : generalFlagsNote]
  }
}

/** `columns`: the width of the help. */
export function createRootCommand(entry: CommandEntry, columns?: number): ParleyCommand {
  const root = new ParleyCommand('parley')
  root
    .description(
      `One command for a model gateway and an agent session service. Try it, offline:

  parley chat --profile demo 'Say hello'`,
    )
    .usage('<command> [flags]')
    .exitOverride()
    // `main` prints errors.
    .configureOutput({
      outputError: () => {},
      getOutHelpWidth: () => columns as number,
      getErrHelpWidth: () => columns as number,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ ...helpLayoutOptions, subcommandTerm: (command) => command.name() })
    .version(version, '-V, --version', 'print the version')
  root.entry = entry
  return root
}

/**
 * Throws for a word that commander would misread as a short flag with its value, such as
 * `-model` as `-m` with the value `odel`. A word with blanks, such as `-make it short`, is probably a prompt.
 * A header may have blanks, because users of curl write `-H'Name: value'`.
 */
function checkAttachedValue(word: string, command: ParleyCommand): void {
  const { options } = command
  const [name = ''] = word.split('=', 1)
  const option = options.find(({ short }) => short === word.slice(0, 2))
  if (!option) return
  if (word[2] === '=') throw usageError(`${option.short} takes no =: its value is a separate argument`)
  if (isKnownFlag(`-${name}`, command.longFlags)) throw new UnknownNameError(command, [name])
  if (/\s/.test(word) && !(option instanceof HeaderFlag)) throw new UnknownNameError(command, [word])
}

/** Throws for `--stream false`, because `false` would be a word of the prompt. */
function checkToggle({ long }: Option, next: string | undefined, { longFlags }: ParleyCommand): void {
  if (next !== 'true' && next !== 'false') return
  const opposite = longFlags.find((flag) => flag === long?.replace('--', '--no-'))
  const advice = next === 'false' && opposite ? `${opposite} turns it off; ` : ''
  throw usageError(
    `${long} takes no value: ${advice}if '${next}' is a word of the text, put it before the flag`,
  )
}

function shortenParseErrors(parameter: Option | Argument, name: string): void {
  const { parseArg, argChoices } = parameter
  if (!parseArg) return
  parameter.parseArg = (value, previous) => {
    const fail = (problem: string) => usageError(`${name}: '${value}' is ${problem}`)
    if (argChoices && !argChoices.includes(value)) throw fail(`not one of ${argChoices.join(', ')}`)
    try {
      return parseArg(value, previous)
    } catch (error) {
      throw fail((error as Error).message)
    }
  }
}

/** Searches for the short form `-s`, because the flag `--session` of `serve` names a file. */
const hasSessionFlag = ({ options }: Command) => options.some(({ short }) => short === '-s')

const formatChoices = ({ argChoices }: Argument | Option): string | undefined =>
  argChoices && `${argChoices.slice(0, -1).join(', ')} or ${argChoices.at(-1)}`
