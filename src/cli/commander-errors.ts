import type { CommanderError } from 'commander'

/** What commander says about wrong arguments, by its code, and how parley says it. */
const rewordings = new Map<string, [theirs: RegExp, ours: string]>([
  [
    'commander.unknownOption',
    // The value after an unknown flag's = may be a secret.
    [/^unknown option '(-[^\s'=]+)(?:=.*)?'/s, "unknown flag '$1'"],
  ],
  [
    'commander.invalidArgument',
    [/^option '[^']*?(--[\w-]+)[^']*' argument '(.*)' is invalid\. (?=[^']*$)/s, "$1: '$2' is "],
  ],
  [
    'commander.optionMissingArgument',
    [/^option '[^']*?(--[\w-]+)[^']*' argument missing$/, '$1 needs a value'],
  ],
  ['commander.missingArgument', [/^missing required argument '(.*)'$/s, 'the argument <$1> is missing']],
  [
    'commander.excessArguments',
    [
      /^too many arguments for ('.*')\. Expected (\d+) .* got (\d+)\.$/,
      'too many arguments: $1 accepts $2, got $3',
    ],
  ],
])

/** What commander says about wrong arguments, in parley's words. */
export function explain({ code, message }: CommanderError): string {
  const [theirs, ours] = rewordings.get(code) ?? [/^/, '']
  const text = message
    .replace(/^error: /, '')
    .replace(theirs, ours)
    .replace(/ is Allowed choices are (.*)\.$/, ' is not one of $1')
    .replace(
      /^command-argument value '(.*)' is invalid for argument '(\w+)'\. Allowed choices are (.*)\.$/s,
      "<$2>: '$1' is not one of $3",
    )
    .replaceAll('\n', ' ')
    .replace('(Did you', '(did you')
  return code === 'commander.unknownOption' ? `${text}; words that begin with a hyphen go after --` : text
}
