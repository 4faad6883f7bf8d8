import { plainQuote } from '../../io/shell-quote.ts'
import { type CommandLine, type Flag, type Place, type Question, questionsByAnswer } from './command-line.ts'

/** A name, or a flag, whose `=` says that it takes a value; and what it is about. */
type Row = [word: string, about: string]

/** The tables of the bash script: functions that set an array for the words of a command. */
export const writeBashTables = (commandLine: CommandLine): string =>
  writeTables(commandLine, ([word]) => word)

/** Those of the zsh script have what each word is about, too. */
export const writeZshTables = (commandLine: CommandLine): string =>
  writeTables(commandLine, ([word, about]) => `${word}:${about}`)

function writeTables({ places, shared }: CommandLine, write: (row: Row) => string): string {
  const list = (rows: Row[]) => rows.map((row) => plainQuote(write(row))).join(' ')
  const namesOf = ({ names }: Place) => `names=(${list(names)})`
  const flagsOf = ({ flags, shared }: Place) => `_parley_${shared}; flags+=(${list(flags.flatMap(spell))})`
  return [
    ...Object.entries(shared).map(
      ([name, flags]) => `_parley_${name}() {\n  flags=(${list(flags.flatMap(spell))})\n}`,
    ),
    `_parley_names() {\n  names=()\n${select('$1', places.filter(({ names }) => names.length > 0).map(byPath(namesOf)))}\n}`,
    `_parley_flags() {\n${select('$1', places.map(byPath(flagsOf)))}\n}`,
    `_parley_values() {\n${select('$1,$2', questionsByAnswer({ places, shared }).map(answerArm))}\n}`,
  ]
    .join('\n\n')
    .concat('\n')
}

const spell = ({ short, long, about, takesValue }: Flag): Row[] =>
  [short, long].flatMap((name): Row[] => (name ? [[`${name}${takesValue ? '=' : ''}`, about]] : []))

const byPath =
  (write: (place: Place) => string) =>
  (place: Place): [pattern: string, action: string] => [`'${place.path}'`, write(place)]

function answerArm({ answer, questions }: ReturnType<typeof questionsByAnswer>[number]): [string, string] {
  const action =
    typeof answer === 'string' ? `source=${answer}` : `values=(${answer.map(plainQuote).join(' ')})`
  return [questions.map(toPattern).join(' | '), action]
}

const toPattern = ({ path, about }: Question) => (path === undefined ? `*,${about}` : `'${path},${about}'`)

const select = (subject: string, arms: [pattern: string, action: string][]) =>
  [`  case ${subject} in`, ...arms.map(([pattern, action]) => `    ${pattern}) ${action} ;;`), '  esac'].join(
    '\n',
  )
