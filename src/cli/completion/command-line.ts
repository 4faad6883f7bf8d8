import type { Option } from 'commander'
import { type Outline, readOutlines } from '../outline.ts'
import { topics } from '../topics.ts'
import { type Answer, answerToArgument, answerToFlag } from './answers.ts'

export interface Flag {
  short: string | undefined
  long: string
  about: string
  takesValue: boolean
  answer: Answer | undefined
}

/** What can follow the words of a command. */
export interface Place {
  /** The words after `parley`, with blanks between them. */
  path: string
  names: [name: string, about: string][]
  flags: Flag[]
  shared: keyof CommandLine['shared']
  arguments: (Answer | undefined)[]
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
    arguments: outline.arguments.map((argument) => answerToArgument(argument, path)),
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
    answer: takesValue ? answerToFlag(option, path) : undefined,
  }
}

/** Without a path it is asked by every command. */
export interface Question {
  path: string | undefined
  /** A flag, or the number of an argument. */
  about: string | number
}

/** Each answer once, with all that it answers. */
export function questionsByAnswer({
  places,
  shared,
}: CommandLine): { answer: Answer; questions: Question[] }[] {
  const rows = new Map<string, { answer: Answer; questions: Question[] }>()
  const add = (answer: Answer | undefined, question: Question) => {
    if (!answer) return
    const key = JSON.stringify(answer)
    const row = rows.get(key) ?? { answer, questions: [] }
    rows.set(key, row)
    row.questions.push(question)
  }
  const addFlags = (path: string | undefined, flags: Flag[]) => {
    for (const { short, long, answer } of flags) {
      if (short) add(answer, { path, about: short })
      add(answer, { path, about: long })
    }
  }
  addFlags(undefined, shared.request)
  for (const place of places) {
    addFlags(place.path, place.flags)
    for (const [index, answer] of place.arguments.entries()) add(answer, { path: place.path, about: index })
  }
  return [...rows.values()]
}
