import { Command, type CommanderError, type Option } from 'commander'
import { type CliError, usage } from '../errors.ts'
import type { Neighbour } from '../io/stray-files.ts'
import { flagOf, settingNames } from '../settings/table.ts'
import { isShared } from './flags.ts'

/** `config set --base-url …`: there the flag's spelling is the name of a setting. */
const flagAsKey = (word: string) => settingNames.find((name) => flagOf(name) === word) ?? word

/** commander takes whatever follows for a flag's value; here one that begins with a hyphen is not guessed at. */
export class ParleyCommand extends Command {
  /** Its first word is the name of a setting, in any spelling. */
  namesSetting = false

  override createCommand(name?: string): ParleyCommand {
    return new ParleyCommand(name).optionsGroup('Flags:')
  }

  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    const argv = this.namesSetting ? words.map(flagAsKey) : words
    const neighbours: Neighbour[] = []
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!word.startsWith('-') && this.commands.length > 0) break
      if (!option) refuseMisread(word, this.options)
      if (!option?.required) continue
      const value = argv[++i]
      if (value !== undefined && value.length > 1 && value.startsWith('-')) {
        throw usage(`${word}: a value that begins with a hyphen must be attached: ${option.long}='${value}'`)
      }
      const next = argv[i + 1]
      if (/^(file|input)$/.test(option.attributeName()) && next !== undefined && !next.startsWith('-'))
        neighbours.push({ flag: option.short ?? '', word: next })
    }
    if (neighbours.length > 0) this.setOptionValue('neighbours', neighbours)
    const parsed = super.parseOptions(argv)
    // A group hands them on; elsewhere they are wrong, and what is near is looked for without a value.
    return this.commands.length > 0 ? parsed : { ...parsed, unknown: parsed.unknown.map(withoutValue) }
  }

  /** What every command has would bury what is the command's own; a topic tells of it. */
  override helpInformation(context?: { error: boolean }): string {
    for (const option of this.options) if (isShared(option)) option.hideHelp()
    return super.helpInformation(context)
  }
}

/** Short flags in one word: what follows one that takes a value is its value, a `=` and a whole prompt too. */
function refuseMisread(word: string, options: readonly Option[]): void {
  const [name] = word.split('=', 1)
  const toggle = options.find(({ long, required, optional }) => long === name && !required && !optional)
  if (toggle) throw usage(`${name} takes no value`)
  if (!/^-[A-Za-z]./.test(word)) return
  for (let at = 1; at < word.length; at++) {
    const option = options.find(({ short }) => short === `-${word[at]}`)
    if (!option) return
    const rest = word.slice(at + 1)
    if (rest.startsWith('=')) throw joined(option, rest.slice(1))
    if (option.required) {
      refuseBlanks(word, option, rest)
      return
    }
  }
}

/** But a header has blanks, and is attached as curl takes it. */
function refuseBlanks(word: string, { short, long }: Option, value: string): void {
  if (!/\s/.test(value) || short === '-H') return
  const ways = `a prompt goes after --, a value with blanks is given as ${short} VALUE or ${long}=VALUE`
  throw usage(`'${brief(word)}' begins with the flag ${short}: ${ways}`)
}

const withoutValue = (word: string) => (word.startsWith('--') ? word.replace(/=.*/s, '') : word)

function joined({ short, long, required }: Option, value: string): CliError {
  if (!required) return usage(`${short} takes no value`)
  // A header may be a secret.
  const shown = short === '-H' ? 'VALUE' : brief(/^[\w./:@-]+$/.test(value) ? value : `'${value}'`)
  return usage(`${short} takes its value without =: ${short} ${shown} or ${long}=${shown}`)
}

const brief = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text)

/** What commander says of wrong arguments, as a usage error says it. */
export function explain({ code, message }: CommanderError): string {
  // What stands after an unknown flag's = may be a secret.
  const text = message
    .replace(/^error: /, '')
    .replace(/'(-[^\s'=]+)=.*'/s, "'$1'")
    .replaceAll('\n', ' ')
    .replace('(Did you', '(did you')
  return code === 'commander.unknownOption' ? `${text}; words that begin with a hyphen go after --` : text
}
