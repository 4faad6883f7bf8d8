import { outcomes } from '../errors.ts'
import { flagOf, hasFlag, settingNames, settingOf, variableOf } from '../settings/table.ts'

const environment = () => `Every setting can stand in the environment; an empty value counts as unset.

${table(settingNames.map((name) => [variableOf(name), settingOf(name).about]))}

  PARLEY_PROFILE      the current profile
  PARLEY_SESSION      the session of events send, confirm, list and follow
  PARLEY_CONFIG_DIR   the folder of the profile file
  NO_COLOR, FORCE_COLOR, TERM=dumb   are obeyed
`

const exitCodes = () => `How a run ended, and whether the same command may be run again.

${table([
  ['0', 'done', ''],
  ...Object.entries(outcomes).map(([kind, { exit, when, again }]) => [`${exit}`, `${kind}: ${when}`, again]),
  ['12', 'events follow: tool uses wait for an answer', ''],
  ['13', 'events follow: the session was terminated or is stuck', ''],
])}

A signal ends parley by that signal: a shell sees 130 or 143.
`

const profiles =
  () => `A profile is a named set of settings in a file of yours ('parley config path' tells which).

  parley config init                                  asks for everything
  parley config set baseUrl https://gateway.example
  parley config set accessToken < token.txt           a secret never stands in an argument
  parley config set accessTokenCommand 'pass show x'  or a command prints it
  parley config set --profile work baseUrl https://other.example
  parley config use work                              makes it the current one
  parley config list --effective                      what holds, and why

A value comes from the first of: a flag, the profile named by --profile, the environment, the current profile,
the default. With --profile, addresses and secrets never come from the environment. A secret goes to the address
that stands beside it, or to one given by flag.

${table(settingNames.map((name) => [name, hasFlag(name) ? flagOf(name) : (settingOf(name).ownFlag ?? 'no flag'), settingOf(name).about]))}
`

const input = () => `Where a prompt or a body comes from.

  parley chat 'words'                 the words
  git diff | parley chat 'Review:'    the words, then what the pipe holds
  parley chat < prompt.txt            the text; a body, if it begins with {
  parley chat -i body.json            a body, sent as it is spelled; -i - reads it from stdin
  parley chat 'Compare' - < b.txt     the word - is the text on stdin
  parley chat -f a.png 'What is it?'  files become parts of the turn

Flags are merged over a body: words and -f add a turn, --max-output-tokens sets its field, --set PATH=VALUE comes
last (a.b, a[0], a[], a["x.y"]; VALUE is JSON, else text).
In a 'while read' loop parley would eat the loop's input: give it --no-stdin or </dev/null there.
`

/** Help that belongs to no command. */
export const topics: Record<string, () => string> = { environment, 'exit-codes': exitCodes, profiles, input }

function table(rows: string[][]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd())
    .join('\n')
}
