import { Command, type CommanderError } from 'commander'
import { usage } from './errors.ts'
import { flagOf, settingNames } from './settings/table.ts'

/** `config set --base-url …`: there the flag's spelling is the name of a setting. */
const flagAsKey = (word: string) => settingNames.find((name) => flagOf(name) === word) ?? word

/** commander takes whatever follows for a flag's value; here one that begins with a hyphen is not guessed at. */
export class ParleyCommand extends Command {
  override createCommand(name?: string): Command {
    return new ParleyCommand(name)
  }

  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    const argv = this.registeredArguments[0]?.name() === 'key' ? words.map(flagAsKey) : words
    for (let i = 0; i < argv.length && argv[i] !== '--'; i++) {
      const word = argv[i] as string
      const option = this.options.find(({ short, long }) => word === short || word === long)
      if (!word.startsWith('-') && this.commands.length > 0) break
      if (!option?.required) continue
      const value = argv[++i]
      if (value !== undefined && value.length > 1 && value.startsWith('-')) {
        throw usage(`${word}: a value that begins with a hyphen must be attached: ${option.long}='${value}'`)
      }
    }
    return super.parseOptions(argv)
  }
}

/** What commander says of wrong arguments, as a usage error says it. */
export function explain({ code, message }: CommanderError): string {
  // What stands after an unknown flag's = may be a secret.
  const text = message
    .replace(/^error: /, '')
    .replace(/'(-[^\s'=]+)=.*'/s, "'$1'")
    .replaceAll('\n', ' ')
  return code === 'commander.unknownOption' ? `${text}; words that begin with a hyphen go after --` : text
}
