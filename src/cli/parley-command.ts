import { Argument, Command, Option } from 'commander'
import { looksLikeFlag } from '../argv/bare-flags.ts'
import { HeaderFlag } from '../argv/flags.ts'
import type { CommandEntry, CommandModule } from '../commands/command.ts'
import { usageError } from '../errors.ts'
import {
  declareGeneralFlags,
  declareRequestFlags,
  type GivenFlag,
  isHelpFlag,
  isSharedFlag,
} from './flags.ts'
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
const createRequestFlagsNote = (without: readonly string[]) => {
  const flags = ['--raw', '--dry-run', '--curl', '-H', '-q', '-v'].filter((flag) => !without.includes(flag))
  return `Shared flags: --profile NAME, ${flags.join(', ')}, and flags for most settings, such as --timeout: see 'parley help settings'.`
}

const helpFlag = ['-h, --help', 'print this help'] as const

/** commander declares the flags of a command and prints its help. This class parses the flags. */
export class ParleyCommand extends Command {
  entry: CommandEntry = { summary: '' }
  /** `undefined` for a group, and before `load`. */
  module: CommandModule | undefined
  readonly given: GivenFlag[] = []
  isHelpGiven = false

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
    const { load, requests } = this.entry
    this.module = (await load?.())?.default
    for (const each of this.module?.parameters?.() ?? [])
      if (each instanceof Argument) this.addArgument(each)
      else this.addOption(each)
    if (requests) declareRequestFlags(this)
    else declareGeneralFlags(this)
    this.usage(this.usage().replace('[options]', '[flags]'))
  }

  get path(): ParleyCommand[] {
    return this.parent ? [...(this.parent as ParleyCommand).path, this] : [this]
  }

  get commandNames(): string[] {
    return this.path.slice(1).map((command) => command.name())
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

  /**
   * Parses flags and words. A group stops at its first word, which names a command. A value that begins with a
   * hyphen must be attached, as in `--system=-x`. With `--help` or `--version`, unknown flags are ignored.
   */
  readWords(argv: readonly string[]): void {
    const words = [...argv]
    let unknown: string[] | undefined
    for (let word = words.shift(); word !== undefined; word = words.shift()) {
      const isWord = !looksLikeFlag(word)
      if (isWord) this.args.push(word)
      if (word === '--' || (isWord && this.entry.group)) {
        this.args.push(...words)
        break
      }
      if (isWord) continue
      const found = findFlag(word, this)
      if (isHelpFlag(word)) this.isHelpGiven = true
      else if (found) this.#readFlag(word, found, words)
      else unknown ??= [word]
    }
    if (this.isHelpGiven || this.opts().version) return
    if (unknown) throw new UnknownNameError(this, unknown)
    if (!this.entry.group) this.#checkWords()
  }

  #readFlag(word: string, { option, attached }: FoundFlag, words: string[]): void {
    const { long: flag = '', required, negate } = option
    const name = option.attributeName()
    if (!required) {
      if (attached !== undefined) words.unshift(`-${attached}`)
      else if (this.#acceptsText) checkToggle(option, words[0], this)
      this.given.push({ option, flag })
      this.setOptionValue(name, !negate)
      return
    }
    const value = attached ?? words.shift()
    const choices = formatChoices(option)
    if (value === undefined) throw usageError(`${flag} needs a value${choices ? `: ${choices}` : ''}`)
    if (attached === undefined && looksLikeFlag(value))
      throw usageError(`${word} needs a value; if the value is '${value}', write ${flag}='${value}'`)
    this.given.push({ option, flag, value })
    this.setOptionValue(name, parseValue(option, flag, value, this.getOptionValue(name)))
  }

  #checkWords(): void {
    const { args, registeredArguments: all } = this
    for (const [at, argument] of all.entries()) {
      const word = args[at]
      if (word !== undefined) parseValue(argument, `<${argument.name()}>`, word)
      else if (argument.required)
        throw usageError(
          `the argument <${argument.name()}> is missing: ${formatChoices(argument) ?? argument.description}`,
        )
    }
    if (args.length <= all.length || all.at(-1)?.variadic) return
    const [word = ''] = args
    const isSession = all.length === 0 && hasSessionFlag(this) && /^[\w-]+$/.test(word)
    throw usageError(
      `too many arguments: '${this.commandNames.join(' ')}' takes ${all.length || 'none'}, and got ${args.length}${isSession ? `; -s ${word} names a session` : ''}`,
    )
  }

  /**
   * True if the words `true` and `false` may belong to a prompt. In `config set`, they are the value of a
   * setting.
   */
  get #acceptsText(): boolean {
    return this.registeredArguments.some(({ variadic }) => variadic)
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
    const { group, notes = [], requests, without = [] } = this.entry
    if (!this.parent) return [...notes]
    if (group) {
      const first = ['parley', ...this.commandNames, Object.keys(group)[0], '--help'].join(' ')
      return [`Each command has its own help, such as '${first}'.`, ...notes]
    }
    const { notes: own = [], examples = [] } = this.module ?? {}
    const lines = examples.map((example) => `\n  ${example}`)
    return [
      ...own,
      `Examples:${lines.join('')}`,
      requests ? createRequestFlagsNote(without) : generalFlagsNote,
    ]
  }
}

interface FoundFlag {
  option: Option
  /** Value in the same word. After a short flag without a value, the further short flags, as in `-qv`. */
  attached?: string
}

/**
 * Throws for `--raw=1`, and for a word such as `-model`, which is probably not the short flag `-m` with the
 * value `odel`. A word with blanks, such as `-make it short`, is probably a prompt. A header may have blanks,
 * because users of curl write `-H'Name: value'`.
 */
function findFlag(word: string, command: ParleyCommand): FoundFlag | undefined {
  const { options, longFlags } = command
  const [name = ''] = word.split('=', 1)
  const option = options.find(({ short, long }) => word === short || name === long)
  if (name !== word && (option?.required === false || isHelpFlag(name)))
    throw usageError(`${name} takes no value`)
  if (option) return word === name ? { option } : { option, attached: word.slice(name.length + 1) }
  const short = options.find((each) => each.short === word.slice(0, 2))
  if (!short || word.startsWith('--')) return undefined
  if (word[2] === '=') throw usageError(`${short.short} takes no =: its value is a separate argument`)
  if (isKnownFlag(`-${name}`, longFlags)) throw new UnknownNameError(command, [name])
  if (/\s/.test(word) && !(short instanceof HeaderFlag)) throw new UnknownNameError(command, [word])
  return { option: short, attached: word.slice(2) }
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

function parseValue(
  { parseArg, argChoices }: Option | Argument,
  name: string,
  value: string,
  previous?: unknown,
): unknown {
  const problem = (text: string) => usageError(`${name}: '${value}' is ${text}`)
  if (argChoices && !argChoices.includes(value)) throw problem(`not one of ${argChoices.join(', ')}`)
  try {
    return parseArg ? parseArg(value, previous) : value
  } catch (error) {
    throw problem((error as Error).message)
  }
}

/** Searches for the short form `-s`, because the flag `--session` of `serve` names a file. */
const hasSessionFlag = ({ options }: Command) => options.some(({ short }) => short === '-s')

const formatChoices = ({ argChoices }: Argument | Option): string | undefined =>
  argChoices && `${argChoices.slice(0, -1).join(', ')} or ${argChoices.at(-1)}`
