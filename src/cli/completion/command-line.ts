import type { Argument, Option } from 'commander'
import { FileFlag, SettingArgument, TextFlag } from '../../argv/flags.ts'
import { schemas } from '../../settings/schemas.ts'
import { flagOf, settingNames } from '../../settings/table.ts'
import { documentedModels } from '../../wire/gateway/models.ts'
import { betas } from '../../wire/sessions/betas.ts'
import { eventTypes } from '../../wire/sessions/event-types.ts'
import { type Outline, readOutlines } from '../outline.ts'
import { topics } from '../topics.ts'

/** What TAB offers for a value: words, names of files, `@` and a file's name, names of profiles, or sessions used last. */
export type Completion = readonly string[] | 'files' | 'texts' | 'profiles' | 'sessions'

export interface Flag {
  short: string | undefined
  long: string
  about: string
  takesValue: boolean
  completion: Completion | undefined
}

/** What can follow the words of a command. */
export interface Place {
  /** The words after `parley`, with blanks between them. */
  path: string
  names: [name: string, about: string][]
  flags: Flag[]
  shared: keyof CommandLine['shared']
  arguments: (Completion | undefined)[]
}

/** The command line as the shells' scripts have it. */
export interface CommandLine {
  places: Place[]
  shared: { general: Flag[]; request: Flag[] }
}

export async function readCommandLine(): Promise<CommandLine> {
  const outlines = await readOutlines()
  const sharedBy = (isRequest: boolean) =>
    outlines.find((outline) => takesRequests(outline) === isRequest)?.shared.map((flag) => toFlag(flag, ''))
  const places = outlines.map(toPlace)
  return {
    places: [...places, ...placesOfHelp(places)],
    shared: { general: sharedBy(false) ?? [], request: sharedBy(true) ?? [] },
  }
}

const takesRequests = ({ shared }: Outline) => shared.some(({ long }) => long === '--dry-run')

function toPlace(outline: Outline): Place {
  const path = outline.words.join(' ')
  return {
    path,
    names: Object.entries(outline.children).map(([name, { summary }]) => [name, summary]),
    flags: outline.flags.map((flag) => toFlag(flag, path)),
    shared: takesRequests(outline) ? 'request' : 'general',
    arguments: outline.arguments.map((argument) => completionOfArgument(argument, path)),
  }
}

/** After `help` come the topics, and the commands again. */
function placesOfHelp([root, ...others]: Place[]): Place[] {
  const help = others.find(({ path }) => path === 'help') as Place
  const groups = others.filter(({ names }) => names.length > 0)
  help.names = [...topics.map((name): [string, string] => [name, 'a topic']), ...(root?.names ?? [])]
  return groups.map((group) => ({ ...help, path: `help ${group.path}`, names: group.names }))
}

function toFlag(option: Option, path: string): Flag {
  const { short, long = '', description, required, optional } = option
  const takesValue = required || optional
  return {
    short,
    long,
    about: description,
    takesValue,
    completion: takesValue ? completionOfFlag(option, path) : undefined,
  }
}

/** Without a path it is asked by every command. */
export interface CompletionQuestion {
  path: string | undefined
  /** A flag, or the number of an argument. */
  about: string | number
}

/** Each completion once, with all that it is for. */
export function questionsByCompletion({
  places,
  shared,
}: CommandLine): { completion: Completion; questions: CompletionQuestion[] }[] {
  const rows = new Map<string, { completion: Completion; questions: CompletionQuestion[] }>()
  const add = (completion: Completion | undefined, question: CompletionQuestion) => {
    if (!completion) return
    const key = JSON.stringify(completion)
    const row = rows.get(key) ?? { completion, questions: [] }
    rows.set(key, row)
    row.questions.push(question)
  }
  const addFlags = (path: string | undefined, flags: Flag[]) => {
    for (const { short, long, completion } of flags) {
      if (short) add(completion, { path, about: short })
      add(completion, { path, about: long })
    }
  }
  addFlags(undefined, shared.request)
  for (const place of places) {
    addFlags(place.path, place.flags)
    for (const [index, completion] of place.arguments.entries())
      add(completion, { path: place.path, about: index })
  }
  return [...rows.values()]
}

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
  ['policy check file', 'files'],
  ['policy check events', 'files'],
  ['api service', ['gateway', 'agents']],
])

/** What a flag's value can be; `path` is the words of its command. */
function completionOfFlag(option: Option, path: string): Completion | undefined {
  const { long, flags, argChoices } = option
  const given = argChoices ?? known.get(`${path} ${long}`) ?? known.get(long ?? '') ?? choicesOf(long)
  if (given) return given
  if (option instanceof FileFlag) return 'files'
  return option instanceof TextFlag && !flags.includes('=') ? 'texts' : undefined
}

function completionOfArgument(argument: Argument, path: string): Completion | undefined {
  if (argument instanceof SettingArgument) return settingNames
  return argument.argChoices ?? known.get(`${path} ${argument.name()}`)
}

/** The only values that a setting can have, if its flag is this one. */
function choicesOf(flag: string | undefined): string[] | undefined {
  const name = settingNames.find((each) => flagOf(each) === flag)
  const { def } = name ? schemas[name]()._zod : {}
  return def && 'entries' in def ? Object.values(def.entries as Record<string, string>) : undefined
}
