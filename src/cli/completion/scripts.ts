import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { plainQuote } from '../../io/shell-quote.ts'
import {
  type CommandLine,
  type Completion,
  type CompletionQuestion,
  type Flag,
  type Place,
  questionsByCompletion,
  readCommandLine,
} from './command-line.ts'

const writers: Record<string, (commandLine: CommandLine, functions: string) => string> = {
  bash: (commandLine, functions) =>
    `# Completion of parley's words, for bash 4.2 or later.\n\n${writeBashTables(commandLine)}\n${functions}`,
  // The first line tells zsh what a file in its folder is for.
  zsh: (commandLine, functions) => `#compdef parley\n\n${writeZshTables(commandLine)}\n${functions}`,
  fish: (commandLine, functions) =>
    `# Completion of parley's words, for fish 3.4 or later.\n\n${functions}${writeFishTables(commandLine)}`,
}

/** A shell's completion script. The build puts the finished scripts in the place of this module. */
export async function findScript(shell: string): Promise<string | undefined> {
  if (!Object.hasOwn(writers, shell)) return undefined
  const functions = readFileSync(join(import.meta.dirname, `functions.${shell}`), 'utf8')
  return writers[shell]?.(await readCommandLine(), functions)
}

/** A name, or a flag, whose `=` says that it takes a value; and what it is about. */
type CompletionRow = [word: string, about: string]

/** The tables of the bash script: functions that set an array for the words of a command. */
const writeBashTables = (commandLine: CommandLine): string => writeTables(commandLine, ([word]) => word)

/** Those of the zsh script have what each word is about, too. */
const writeZshTables = (commandLine: CommandLine): string =>
  writeTables(commandLine, ([word, about]) => `${word}:${about}`)

function writeTables({ places, shared }: CommandLine, write: (row: CompletionRow) => string): string {
  const list = (rows: CompletionRow[]) => rows.map((row) => plainQuote(write(row))).join(' ')
  const namesOf = ({ names }: Place) => `names=(${list(names)})`
  const flagsOf = ({ flags, shared }: Place) => `_parley_${shared}; flags+=(${list(flags.flatMap(spell))})`
  return [
    ...Object.entries(shared).map(
      ([name, flags]) => `_parley_${name}() {\n  flags=(${list(flags.flatMap(spell))})\n}`,
    ),
    `_parley_names() {\n  names=()\n${select('$1', places.filter(({ names }) => names.length > 0).map(byPath(namesOf)))}\n}`,
    `_parley_flags() {\n${select('$1', places.map(byPath(flagsOf)))}\n}`,
    `_parley_values() {\n${select('$1,$2', questionsByCompletion({ places, shared }).map(completionArm))}\n}`,
  ]
    .join('\n\n')
    .concat('\n')
}

const spell = ({ short, long, about, takesValue }: Flag): CompletionRow[] =>
  [short, long].flatMap((name): CompletionRow[] => (name ? [[`${name}${takesValue ? '=' : ''}`, about]] : []))

const byPath =
  (write: (place: Place) => string) =>
  (place: Place): [pattern: string, action: string] => [`'${place.path}'`, write(place)]

function completionArm({
  completion,
  questions,
}: ReturnType<typeof questionsByCompletion>[number]): [string, string] {
  const action =
    typeof completion === 'string'
      ? `source=${completion}`
      : `values=(${completion.map(plainQuote).join(' ')})`
  return [questions.map(toPattern).join(' | '), action]
}

const toPattern = ({ path, about }: CompletionQuestion) =>
  path === undefined ? `*,${about}` : `'${path},${about}'`

const select = (subject: string, arms: [pattern: string, action: string][]) =>
  [`  case ${subject} in`, ...arms.map(([pattern, action]) => `    ${pattern}) ${action} ;;`), '  esac'].join(
    '\n',
  )

/** The tables of the fish script: one `complete` for each name and flag. */
function writeFishTables({ places, shared }: CommandLine): string {
  const valued = [...places.flatMap(({ flags }) => flags), ...shared.request].filter(
    (flag) => flag.takesValue,
  )
  const spellings = valued.flatMap(({ short, long }) => (short ? [short, long] : [long]))
  const requesting = places.filter((place) => place.shared === 'request').map(({ path }) => fishQuote(path))
  const isGeneral = (flag: Flag) => shared.general.some(({ long }) => long === flag.long)
  const onlyOfRequests = shared.request.filter((flag) => !isGeneral(flag))
  return [
    `function __parley_requests\n    __parley_in ${requesting.join(' ')}\nend\n`,
    `set -g __parley_valued ${[...new Set(spellings)].join(' ')}`,
    `set -g __parley_commands ${places.map(({ path }) => fishQuote(path)).join(' ')}`,
    'complete -c parley -e',
    'complete -c parley -f',
    ...places.flatMap(linesOf),
    ...shared.general.map((flag) => flagLine('', flag)),
    ...onlyOfRequests.map((flag) => flagLine('__parley_requests', flag)),
    '',
  ].join('\n')
}

function linesOf({ path, names, flags, arguments: completions }: Place): string[] {
  const at = (position: number) => `__parley_at ${fishQuote(`${path},${position}`)}`
  return [
    ...names.map(([name, about]) => `${start(at(0))} -a ${name} -d ${fishQuote(about)}`),
    ...completions.flatMap((completion, index) =>
      completion ? [`${start(at(index))} ${offer(completion)}`] : [],
    ),
    ...flags.map((flag) => flagLine(`__parley_in ${fishQuote(path)}`, flag)),
  ]
}

function flagLine(condition: string, { short, long, about, takesValue, completion }: Flag): string {
  const name = `${short ? `-s ${short.slice(1)} ` : ''}-l ${long.slice(2)}`
  const value = takesValue ? ` -r ${completion ? offer(completion) : '-f'}` : ''
  return `${start(condition)} ${name}${value} -d ${fishQuote(about)}`
}

const start = (condition: string) => `complete -c parley${condition && ` -n ${fishQuote(condition)}`}`

/** fish reads the words after -a again, as it reads a command. */
function offer(completion: Completion): string {
  if (completion === 'files') return '-F'
  // -k keeps their order.
  if (typeof completion === 'string') return `-f -k -a '(__parley_${completion})'`
  return `-f -a ${fishQuote(completion.map(fishQuote).join(' '))}`
}

const fishQuote = (text: string) => (/^[\w.-]+$/.test(text) ? text : `'${text.replace(/[\\']/g, '\\$&')}'`)
