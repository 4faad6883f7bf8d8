import { Option } from 'commander'
import { addValue, FileFlag, TextFlag } from '../../argv/flags.ts'
import { type FileKinds, readGivenFile } from '../../content/files.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { Input } from '../../io/input.ts'
import { describeJsonError, parseJson } from '../../wire/json/parse.ts'

/** An event flag as it was given. */
export interface EventFlag {
  name: string
  value: string
}

/** An event of a flag. */
export interface AddedEvent {
  value: unknown
  /** As it was spelled. */
  json?: string
}

const flags: [name: string, value: string, about: string][] = [
  ['message', '<text>', 'a message, like the words, or @FILE'],
  ['interrupt', '', 'interrupt every thread'],
  ['interrupt-thread', '<id>', 'interrupt one thread'],
  ['tool-result', '<id=text>', 'the result of a tool use, or ID=@FILE'],
  ['tool-error', '<id=text>', 'why a tool use failed, or ID=@FILE'],
  ['custom-tool-result', '<id=text>', 'the result of a custom tool use, or ID=@FILE'],
  ['custom-tool-error', '<id=text>', 'why a custom tool use failed, or ID=@FILE'],
  ['outcome', '<text>', 'what to work toward, or @FILE'],
  ['rubric', '<text>', 'how that outcome is judged, or @FILE'],
  ['max-iterations', '<n>', 'the most attempts at that outcome'],
  ['system', '<text>', 'privileged context, sent last, or @FILE'],
  ['event', '<json>', 'any event, as it is, or @FILE'],
]

/** The names of all event flags. */
export const eventFlagNames: readonly string[] = flags.map(([name]) => name)

/** Whether the flag's value is stdin's text. */
export const asksForStdin = ({ name, value }: EventFlag): boolean =>
  value === '@-' || (/^(custom-)?tool-/.test(name) && /^[^=]+=@-$/.test(value))

/** The flags for events, and `-f`. A command with many others does not list them in its help. */
export const eventFlags = ({ isListed = true } = {}): Option[] => [
  ...flags.map(([name, value, about]) => {
    const spelled = `--${name}${value ? ` ${value}` : ''}`
    const option = about.includes('@FILE') ? new TextFlag(spelled, about) : new Option(spelled, about)
    return option.hideHelp(!isListed)
  }),
  new FileFlag('-f, --file <file>', 'add a text, image or PDF file, or - for stdin').argParser(addValue),
]

/** Those for events that were given, in the order written. */
export const givenEventFlags = ({ flags: { given } }: Pick<Context, 'flags'>): EventFlag[] =>
  given
    .map(({ flag, value = '' }) => ({ name: flag.slice(2), value }))
    .filter(({ name }) => eventFlagNames.includes(name))

/** A block of a message. */
export type EventBlock =
  | { type: 'text'; text: string }
  | { type: 'image' | 'document'; source: { type: 'base64'; media_type: string; data: string } }

const fileKinds: FileKinds = { mimeTypes: /^image\/|^application\/pdf$/, named: 'an image or PDF file' }

/** Reads files into blocks of a message: text with the file's name before it, any other with its bytes as base64. */
export async function readFileBlocks(input: Input, paths: readonly string[] = []): Promise<EventBlock[]> {
  const blocks: EventBlock[] = []
  for (const path of paths) {
    const file = await readGivenFile(input, path, fileKinds)
    if ('base64' in file) {
      const type = file.mimeType === 'application/pdf' ? 'document' : 'image'
      blocks.push({ type, source: { type: 'base64', media_type: file.mimeType, data: file.base64 } })
    } else blocks.push(textBlock(file.name === undefined ? file.text : `${file.name}:\n${file.text}`))
  }
  return blocks
}

/**
 * The events of the flags, in the order they were written, then a message of these blocks, then `--system`. Throws a usage
 * error.
 */
export async function readEventFlags(
  input: Input,
  given: EventFlag[],
  content: readonly EventBlock[],
): Promise<AddedEvent[]> {
  const events: (AddedEvent | OutcomeFlags)[] = []
  /** The last event, if it is one of `--outcome`. */
  let outcome: OutcomeFlags | undefined
  for (const flag of given.filter(({ name }) => name !== 'system')) {
    const { name, value } = flag
    if (name === 'rubric' || name === 'max-iterations') {
      if (!outcome) throw usage(`--${name} must follow the --outcome that it belongs to`)
      if (name === 'rubric') outcome.rubric = await input.value(value, '--rubric')
      else outcome.maxIterations = requireDigits(value)
      continue
    }
    outcome = name === 'outcome' ? { description: await input.value(value, '--outcome') } : undefined
    events.push(outcome ?? (await toEvent(input, flag)))
  }
  if (content.length > 0) events.push({ value: { type: 'user.message', content } })
  for (const { value } of given.filter((flag) => flag.name === 'system')) {
    const content = [textBlock(await input.value(value, '--system'))]
    events.push({ value: { type: 'system.message', content } })
  }
  return events.map((event) => ('description' in event ? toOutcomeEvent(event) : event))
}

export const textBlock = (text: string): EventBlock => ({ type: 'text', text })

interface OutcomeFlags {
  description: string
  rubric?: string
  /** As it was spelled. */
  maxIterations?: string
}

function toOutcomeEvent({ description, rubric, maxIterations }: OutcomeFlags): AddedEvent {
  const about = rubric === undefined ? {} : { rubric: { type: 'text', content: rubric } }
  const value = { type: 'user.define_outcome', description, ...about }
  if (maxIterations === undefined) return { value }
  const json = `${JSON.stringify(value).slice(0, -1)},"max_iterations":${maxIterations}}`
  return { value: JSON.parse(json), json }
}

function requireDigits(value: string): string {
  if (/^(0|[1-9]\d*)$/.test(value)) return value
  throw usage(`--max-iterations must be a whole number, not '${value}'`)
}

async function toEvent(input: Input, { name, value }: EventFlag): Promise<AddedEvent> {
  const read = (text: string) => input.value(text, `--${name}`)
  if (name === 'event') return readJson(await read(value))
  if (name === 'message') return { value: { type: 'user.message', content: [textBlock(await read(value))] } }
  if (name === 'interrupt') return { value: { type: 'user.interrupt' } }
  if (name === 'interrupt-thread') return { value: { type: 'user.interrupt', session_thread_id: value } }
  const [, id = '', text = ''] = /^([^=]+)=(.*)$/s.exec(value) ?? []
  if (id === '') throw usage(`--${name} must have the form ID=TEXT`)
  const result = {
    ...(name.startsWith('custom-')
      ? { type: 'user.custom_tool_result', custom_tool_use_id: id }
      : { type: 'user.tool_result', tool_use_id: id }),
    content: [textBlock(await read(text))],
    ...(name.endsWith('error') ? { is_error: true } : {}),
  }
  return { value: result }
}

async function readJson(json: string): Promise<AddedEvent> {
  try {
    return { value: parseJson(json), json }
  } catch {
    throw usage(`--event: not valid JSON: ${await describeJsonError(json)}`)
  }
}
