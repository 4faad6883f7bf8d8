import { Command, type Option } from 'commander'
import { HeaderFlag, InputFlag, SettingArgument } from '../argv/flags.ts'
import { type CliError, usage } from '../errors.ts'
import type { Neighbour } from '../io/stray-files.ts'
import { flagOf, settingNames } from '../settings/table.ts'
import { type Given, isShared } from './flags.ts'

/** `config set --base-url …`: there the flag is the name of a setting. */
const flagAsKey = (word: string) => settingNames.find((name) => flagOf(name) === word) ?? word

/** commander takes any next word as a flag's value; here a word that begins with a hyphen is an error. */
export class ParleyCommand extends Command {
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
    // A group passes unknown flags on. Any other command reports them, and suggests a flag by the name alone.
    return this.commands.length > 0 ? parsed : { ...parsed, unknown: parsed.unknown.map(withoutValue) }
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
      if (value !== undefined && value.length > 1 && value.startsWith('-')) {
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

const withoutValue = (word: string) => (word.startsWith('--') ? word.replace(/=.*/s, '') : word)

function attached(option: Option, value: string): CliError {
  const { short, long, required } = option
  if (!required) return usage(`${short} takes no value`)
  const quoted = brief(/^[\w./:@-]+$/.test(value) ? value : `'${value}'`)
  const shown = option instanceof HeaderFlag ? 'VALUE' : quoted
  return usage(`${short} takes its value without =: ${short} ${shown} or ${long}=${shown}`)
}

const brief = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text)
