import { type Argument, Command, type Option } from 'commander'
import { HeaderFlag, InputFlag, ServiceArgument, SettingArgument } from '../argv/flags.ts'
import { type CliError, usage } from '../errors.ts'
import { quoteWords } from '../io/shell-quote.ts'
import type { Neighbour } from '../io/stray-files.ts'
import { flagOf, settingNames } from '../settings/table.ts'
import type { Entry } from './entry.ts'
import { type Given, isHelpFlag, isShared } from './flags.ts'
import { describeUnknownFlag } from './unknown-flag.ts'

/** `config set --base-url …`: there the flag is the name of a setting. */
const flagAsKey = (word: string) => settingNames.find((name) => flagOf(name) === word) ?? word

/** commander takes any next word as a flag's value; here a word that begins with a hyphen is an error. */
export class ParleyCommand extends Command {
  /** The commands of a group; those of a group in it are commands only once it is called. */
  children: Record<string, Entry> = {}
  /** The flags that were given here, with their values, in the order written. */
  readonly given: Given[] = []

  override createCommand(name?: string): ParleyCommand {
    return new ParleyCommand(name).optionsGroup('Flags:')
  }

  override addOption(option: Option): this {
    this.on(`option:${option.name()}`, (value?: string | null) =>
      this.given.push({ option, value: value ?? '' }),
    )
    return super.addOption(option)
  }

  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    const hasKey = this.registeredArguments[0] instanceof SettingArgument
    const argv = hasKey ? words.map(flagAsKey) : words
    const neighbours = this.checkFlags(argv)
    if (neighbours.length > 0) this.setOptionValue('neighbours', neighbours)
    const parsed = super.parseOptions(argv)
    if (!parsed.unknown.some(isHelpFlag)) this.checkWords(parsed)
    return parsed
  }

  /** Throws a usage error, which says what was probably meant, for an unknown flag or the wrong number of words. */
  private checkWords({ operands, unknown }: { operands: string[]; unknown: string[] }): void {
    const isGroup = this.commands.length > 0
    if (unknown.length > 0 && (!isGroup || operands.length === 0)) {
      const place = { path: this.path, options: this.options, children: this.children }
      throw usage(describeUnknownFlag(unknown, place))
    }
    if (isGroup) return
    const [first] = this.registeredArguments
    const isFirst = first instanceof ServiceArgument && first.isLeftOut(operands)
    const missing = isFirst ? first : this.registeredArguments[operands.length]
    if (missing?.required) throw usage(`the argument <${missing.name()}> is missing: ${choicesOf(missing)}`)
    const isOpen = this.registeredArguments.at(-1)?.variadic ?? false
    if (!isOpen && operands.length > this.registeredArguments.length) throw this.describeExcess(operands)
  }

  private describeExcess(operands: string[]): CliError {
    const { length: most } = this.registeredArguments
    const words = this.path.join(' ')
    if (most > 0) return usage(`too many words: '${words}' takes ${most}, and got ${operands.length}`)
    const name = this.path[0] === 'config' ? '--profile' : '-s'
    const flag = this.options.find(({ short, long }) => short === name || long === name)
    const example = [flag?.short ?? name, operands[0] ?? '']
    const meant = flag === undefined ? '' : ` (did you mean ${quoteWords(example)}?)`
    return usage(`'${words}' takes no words${meant}`)
  }

  /** Its words, without `parley`. */
  private get path(): string[] {
    const { parent } = this
    return parent instanceof ParleyCommand ? [...parent.path, this.name()] : []
  }

  /** Throws a usage error for a flag that commander would misread. Returns the words after the files of flags. */
  private checkFlags(argv: string[]): Neighbour[] {
    const neighbours: Neighbour[] = []
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      if (!word.startsWith('-') && this.commands.length > 0) break
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!option) checkCluster(word, this.options)
      if (!option?.required) continue
      const value = argv[++i]
      if (value === undefined) throw usage(`${option.long} needs a value${valuesOf(option)}`)
      if (value.length > 1 && value.startsWith('-')) {
        throw usage(`${word}: a value that begins with a hyphen must be attached: ${option.long}='${value}'`)
      }
      const next = argv[i + 1]
      if (!(option instanceof InputFlag) || next === undefined || next.startsWith('-')) continue
      const isRepeatable = option.parseArg !== undefined
      neighbours.push({ flag: option.short ?? word, isRepeatable, word: next })
    }
    return neighbours
  }

  /** Shared flags would hide the command's own flags in a long list: a topic shows them. */
  override helpInformation(context?: { error: boolean }): string {
    for (const option of this.options) if (isShared(option)) option.hideHelp()
    return super.helpInformation(context)
  }
}

/** Checks short flags in one word. What follows a flag with a value is its value, even `=` or a whole prompt. */
function checkCluster(word: string, options: readonly Option[]): void {
  const [name] = word.split('=', 1)
  const toggle = options.find(({ long, required, optional }) => long === name && !required && !optional)
  if (toggle) throw usage(`${name} takes no value`)
  if (!/^-[A-Za-z]./.test(word)) return
  for (let at = 1; at < word.length; at++) {
    const option = options.find(({ short }) => short === `-${word[at]}`)
    if (!option) return
    const rest = word.slice(at + 1)
    if (rest.startsWith('=')) throw attached(option, rest.slice(1))
    if (option.required) {
      checkBlanks(word, option, rest)
      return
    }
  }
}

/** A prompt such as '-finally, a word' is not a flag. But a header has blanks, and curl's users attach it. */
function checkBlanks(word: string, option: Option, value: string): void {
  if (!/\s/.test(value) || option instanceof HeaderFlag) return
  const { short, long } = option
  const ways = `a prompt goes after --, a value with blanks is given as ${short} VALUE or ${long}=VALUE`
  throw usage(`'${brief(word)}' begins with the flag ${short}: ${ways}`)
}

const choicesOf = ({ argChoices, description }: Argument): string =>
  argChoices === undefined ? description : listChoices(argChoices)

const valuesOf = ({ argChoices }: Option): string =>
  argChoices === undefined ? '' : `: ${listChoices(argChoices)}`

const listChoices = (choices: readonly string[]): string =>
  `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`

function attached(option: Option, value: string): CliError {
  const { short, long, required } = option
  if (!required) return usage(`${short} takes no value`)
  const quoted = brief(/^[\w./:@-]+$/.test(value) ? value : `'${value}'`)
  const shown = option instanceof HeaderFlag ? 'VALUE' : quoted
  return usage(`${short} takes its value without =: ${short} ${shown} or ${long}=${shown}`)
}

const brief = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text)
