import { type Argument, Command, type Option } from 'commander'
import { HeaderFlag, ServiceArgument, SettingArgument } from '../argv/flags.ts'
import { usage } from '../errors.ts'
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
    this.checkFlags(argv)
    const parsed = super.parseOptions(argv)
    if (!parsed.unknown.some(isHelpFlag)) this.checkWords(parsed)
    return parsed
  }

  /** Throws a usage error, which says what was probably meant, for an unknown flag or the wrong number of words. */
  private checkWords({ operands, unknown }: { operands: string[]; unknown: string[] }): void {
    const isGroup = this.commands.length > 0
    if (unknown.length > 0 && (!isGroup || operands.length === 0)) {
      const place = { path: this.path, options: this.options, children: this.children }
      throw usage(describeUnknownFlag(unknown[0] as string, place))
    }
    if (isGroup) return
    const [first] = this.registeredArguments
    const isFirst = first instanceof ServiceArgument && first.isLeftOut(operands)
    const missing = isFirst ? first : this.registeredArguments[operands.length]
    if (missing?.required) throw usage(`the argument <${missing.name()}> is missing: ${choicesOf(missing)}`)
    const isOpen = this.registeredArguments.at(-1)?.variadic ?? false
    const { length: most } = this.registeredArguments
    const taken = `takes ${most === 0 ? 'none' : most}, and got ${operands.length}`
    if (!isOpen && operands.length > most) throw usage(`too many words: '${this.path.join(' ')}' ${taken}`)
  }

  /** Its words, without `parley`. */
  private get path(): string[] {
    const { parent } = this
    return parent instanceof ParleyCommand ? [...parent.path, this.name()] : []
  }

  /** Throws a usage error for a flag that commander would misread. */
  private checkFlags(argv: string[]): void {
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      if (!word.startsWith('-') && this.commands.length > 0) break
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!option) checkAttached(word, this.options)
      if (!option?.required) continue
      const value = argv[++i]
      if (value === undefined) throw usage(`${option.long} needs a value${valuesOf(option)}`)
      if (value.length > 1 && value.startsWith('-')) {
        throw usage(`${word}: a value that begins with a hyphen must be attached: ${option.long}='${value}'`)
      }
    }
  }

  /** Shared flags would hide the command's own flags in a long list: a topic shows them. */
  override helpInformation(context?: { error: boolean }): string {
    for (const option of this.options) if (isShared(option)) option.hideHelp()
    return super.helpInformation(context)
  }
}

/**
 * Checks a flag that has its value in the same word. A value with blanks after a short flag is probably a prompt that
 * begins with a hyphen; only headers have blanks, and curl's users attach them.
 */
function checkAttached(word: string, options: readonly Option[]): void {
  const [name] = word.split('=', 1)
  const toggle = options.find(({ long, required, optional }) => long === name && !required && !optional)
  if (toggle) throw usage(`${name} takes no value`)
  const option = options.find(({ short }) => short === word.slice(0, 2))
  if (!option || word.startsWith('--')) return
  if (word[2] === '=') throw usage(`${option.short} takes no =: its value is a word of its own`)
  if (/\s/.test(word) && !(option instanceof HeaderFlag))
    throw usage(
      `'${brief(word)}' begins with the flag ${option.short}: words that begin with a hyphen go after --`,
    )
}

const choicesOf = ({ argChoices, description }: Argument): string =>
  argChoices === undefined ? description : listChoices(argChoices)

const valuesOf = ({ argChoices }: Option): string =>
  argChoices === undefined ? '' : `: ${listChoices(argChoices)}`

const listChoices = (choices: readonly string[]): string =>
  `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`

const brief = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text)
