import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Argument, Option } from 'commander'
import { FileArgument, FileFlag, SettingArgument, TextFlag } from '../../argv/flags.ts'
import { plainQuote } from '../../io/shell-quote.ts'
import { schemas } from '../../settings/schemas.ts'
import { flagOf, settingNames } from '../../settings/table.ts'
import { documentedModels } from '../../wire/gateway/models.ts'
import { betas } from '../../wire/sessions/betas.ts'
import { eventTypes } from '../../wire/sessions/event-types.ts'
import { generalFlags } from '../flags.ts'
import { loadCommands } from '../loaded-commands.ts'
import type { ParleyCommand } from '../parley-command.ts'
import { topics } from '../topics.ts'

/** What can follow the words of a command. */
interface Place {
  /** The words after `parley`, with blanks between them. */
  path: string
  names: Offer[]
  flags: Option[]
  shared: keyof CommonFlags
  arguments: readonly Argument[]
}

/** A name, or a flag, whose `=` says that it takes a value; and what it is about. */
type Offer = [word: string, about: string]

type CommonFlags = Record<'general' | 'request', Option[]>

/** What TAB offers for a value: words, names of files, `@` and a file's name, names of profiles, or sessions used last. */
type Completion = readonly string[] | 'files' | 'texts' | 'profiles' | 'sessions'

const writers: Record<string, (places: Place[], shared: CommonFlags, functions: string) => string> = {
  bash: (places, shared, functions) =>
    `# Completion of parley's words, for bash 4.2 or later.\n\n${writeTables(places, shared, ([word]) => word)}\n${functions}`,
  // The first line tells zsh what a file in its folder is for. Here each word has what it is about, too.
  zsh: (places, shared, functions) =>
    `#compdef parley\n\n${writeTables(places, shared, (row) => row.join(':'))}\n${functions}`,
  fish: (places, shared, functions) =>
    `# Completion of parley's words, for fish 3.4 or later.\n\n${functions}${writeFishTables(places, shared)}`,
}

/** A shell's completion script. The build puts the finished scripts in the place of this module. */
export async function findScript(shell: string): Promise<string | undefined> {
  if (!Object.hasOwn(writers, shell)) return undefined
  const functions = readFileSync(join(import.meta.dirname, `functions.${shell}`), 'utf8')
  const commands = await loadCommands()
  const shared = { general: generalFlags(), request: commands[0]?.sharedFlags ?? [] }
  return writers[shell]?.(placesOf(commands), shared, functions)
}

function placesOf(commands: ParleyCommand[]): Place[] {
  const places = commands.map((command): Place => {
    const { entry, words, ownFlags, registeredArguments } = command
    return {
      path: words.join(' '),
      names: command.commands.map((child) => [child.name(), child.summary()]),
      flags: ownFlags,
      shared: entry.requests || entry.group ? 'request' : 'general',
      arguments: registeredArguments,
    }
  })
  // After `help` come the topics, and the commands again.
  const [root, ...others] = places as [Place, ...Place[]]
  const help = others.find(({ path }) => path === 'help') as Place
  const groups = others.filter(({ names }) => names.length > 0)
  help.names = [...topics.map((name): Offer => [name, 'a topic']), ...root.names]
  return [...places, ...groups.map(({ path, names }) => ({ ...help, path: `help ${path}`, names }))]
}

/** The tables of the scripts for bash and zsh: functions that set an array for the words of a command. */
function writeTables(places: Place[], shared: CommonFlags, write: (row: Offer) => string): string {
  const list = (rows: Offer[]) => rows.map((row) => plainQuote(write(row))).join(' ')
  const names = places
    .filter((place) => place.names.length > 0)
    .map(({ path, names }): Arm => [`'${path}'`, `names=(${list(names)})`])
  const flags = places.map(
    ({ path, flags, shared }): Arm => [
      `'${path}'`,
      `_parley_${shared}; flags+=(${list(flags.flatMap(spell))})`,
    ],
  )
  return `${[
    ...Object.entries(shared).map(
      ([name, options]) => `_parley_${name}() {\n  flags=(${list(options.flatMap(spell))})\n}`,
    ),
    `_parley_names() {\n  names=()\n${select('$1', names)}\n}`,
    `_parley_flags() {\n${select('$1', flags)}\n}`,
    `_parley_values() {\n${select('$1,$2', valuesOf(places, shared.request))}\n}`,
  ].join('\n\n')}\n`
}

const namesOf = ({ short, long }: Option): string[] => [short, long].flatMap((name) => name ?? [])

const spell = (option: Option): Offer[] =>
  namesOf(option).map((name) => [`${name}${option.required ? '=' : ''}`, option.description])

/** Each completion once, for the flags and the arguments that it is for. */
function valuesOf(places: Place[], shared: Option[]): Arm[] {
  const patterns = new Map<string, string[]>()
  const add = (completion: Completion | undefined, pattern: string) => {
    if (!completion) return
    const isNamed = typeof completion === 'string'
    const action = isNamed ? `source=${completion}` : `values=(${completion.map(plainQuote).join(' ')})`
    patterns.set(action, [...(patterns.get(action) ?? []), pattern])
  }
  for (const flag of shared) for (const name of namesOf(flag)) add(completionOfFlag(flag, ''), `*,${name}`)
  for (const place of places) {
    const { path } = place
    for (const flag of place.flags)
      for (const name of namesOf(flag)) add(completionOfFlag(flag, path), `'${path},${name}'`)
    for (const [index, argument] of place.arguments.entries())
      add(completionOfArgument(argument, path), `'${path},${index}'`)
  }
  return [...patterns].map(([action, all]) => [all.join(' | '), action])
}

/** One branch of a `case`. */
type Arm = [pattern: string, action: string]

const select = (subject: string, arms: Arm[]) =>
  [`  case ${subject} in`, ...arms.map(([pattern, action]) => `    ${pattern}) ${action} ;;`), '  esac'].join(
    '\n',
  )

/** The tables of the fish script: one `complete` for each name and flag. */
function writeFishTables(places: Place[], { general, request }: CommonFlags): string {
  const valued = [...places.flatMap(({ flags }) => flags), ...request].filter(({ required }) => required)
  const requesting = places.filter(({ shared }) => shared === 'request').map(({ path }) => fishQuote(path))
  const onlyOfRequests = request.filter((flag) => !general.some(({ long }) => long === flag.long))
  return [
    `function __parley_requests\n    __parley_in ${requesting.join(' ')}\nend\n`,
    `set -g __parley_valued ${[...new Set(valued.flatMap(namesOf))].join(' ')}`,
    `set -g __parley_commands ${places.map(({ path }) => fishQuote(path)).join(' ')}`,
    'complete -c parley -e',
    'complete -c parley -f',
    ...places.flatMap(linesOf),
    ...general.map((flag) => flagLine('', flag, '')),
    ...onlyOfRequests.map((flag) => flagLine('__parley_requests', flag, '')),
    '',
  ].join('\n')
}

function linesOf({ path, names, flags, arguments: all }: Place): string[] {
  const at = (position: number) => start(`__parley_at ${fishQuote(`${path},${position}`)}`)
  return [
    ...names.map(([name, about]) => `${at(0)} -a ${name} -d ${fishQuote(about)}`),
    ...all.flatMap((argument, index) => {
      const completion = completionOfArgument(argument, path)
      return completion ? [`${at(index)} ${offer(completion)}`] : []
    }),
    ...flags.map((flag) => flagLine(`__parley_in ${fishQuote(path)}`, flag, path)),
  ]
}

function flagLine(condition: string, flag: Option, path: string): string {
  const { short, long = '', description, required } = flag
  const completion = completionOfFlag(flag, path)
  const name = `${short ? `-s ${short.slice(1)} ` : ''}-l ${long.slice(2)}`
  const value = required ? ` -r ${completion ? offer(completion) : '-f'}` : ''
  return `${start(condition)} ${name}${value} -d ${fishQuote(description)}`
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

/** Values that are offered where others are taken too: by the flag, or by the command with its flag or argument. */
export const known = new Map<string, Completion>([
  ['--profile', 'profiles'],
  ['--session', 'sessions'],
  ['serve --session', 'files'],
  ['config use name', 'profiles'],
  ['config delete name', 'profiles'],
  ['chat --model', documentedModels],
  ['--beta', betas],
  ['--betas', betas],
  ['events list --type', eventTypes],
])

/** What a flag's value can be; `path` is the words of its command. */
function completionOfFlag(option: Option, path: string): Completion | undefined {
  const { long = '', flags, argChoices, required } = option
  if (!required) return undefined
  const given = argChoices ?? known.get(`${path} ${long}`) ?? known.get(long) ?? choicesOf(long)
  if (given) return given
  if (option instanceof FileFlag) return 'files'
  return option instanceof TextFlag && !flags.includes('=') ? 'texts' : undefined
}

function completionOfArgument(argument: Argument, path: string): Completion | undefined {
  if (argument instanceof SettingArgument) return settingNames
  if (argument instanceof FileArgument) return 'files'
  return argument.argChoices ?? known.get(`${path} ${argument.name()}`)
}

/** The only values that a setting can have, if its flag is this one. */
function choicesOf(flag: string): string[] | undefined {
  const name = settingNames.find((each) => flagOf(each) === flag)
  const { def } = name ? schemas[name]()._zod : {}
  return def && 'entries' in def ? Object.values(def.entries as Record<string, string>) : undefined
}
