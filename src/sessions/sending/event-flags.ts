import { Option } from 'commander'
import { appendFlagValue, FileFlag, TextFlag } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { usageError } from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import type { AcceptedFileKinds, InputReader } from '../../io/input.ts'
import { isObject, parseInputJson } from '../../wire/json/parse.ts'
import { createToolResultEvent } from '../reply-events.ts'

interface EventFlag {
  name: string
  value: string
}

const flags: [name: string, value: string, about: string][] = [
  ['message', '<text>', 'message text, or @FILE'],
  ['interrupt', '', 'interrupt all threads except archived ones'],
  ['interrupt-thread', '<id>', 'interrupt one thread'],
  ['tool-result', '<id=text>', 'the result of tool use ID; ID=@FILE reads it from a file'],
  ['tool-error', '<id=text>', 'the error of tool use ID; ID=@FILE reads it from a file'],
  ['custom-tool-result', '<id=text>', 'the result of custom tool use ID; ID=@FILE reads it from a file'],
  ['custom-tool-error', '<id=text>', 'the error of custom tool use ID; ID=@FILE reads it from a file'],
  ['outcome', '<text>', 'an outcome to work toward, or @FILE'],
  ['rubric', '<text>', 'criteria for the outcome, or @FILE (sent in an undocumented form)'],
  ['max-iterations', '<n>', 'maximum attempts to reach the outcome'],
  ['system', '<text>', 'a privileged system message, or @FILE; sent after the other events'],
  ['event', '<json>', 'an event as JSON, or @FILE; sent unchanged (any type with --no-validate)'],
]

export const eventFlagNames: readonly string[] = flags.map(([name]) => name)

export const flagReadsStdin = ({ name, value }: EventFlag): boolean =>
  value === '@-' || (/^(custom-)?tool-/.test(name) && /^[^=]+=@-$/.test(value))

export const createEventFlags = ({ isInHelp = true } = {}): Option[] => [
  ...flags.map(([name, value, about]) => {
    const usage = `--${name}${value ? ` ${value}` : ''}`
    const option = about.includes('@FILE') ? new TextFlag(usage, about) : new Option(usage, about)
    if (value && name !== 'system') option.argParser(appendFlagValue)
    return option.hideHelp(!isInHelp)
  }),
  new FileFlag('-f, --file <file>', 'add a text, image or PDF file, or - for stdin').argParser(
    appendFlagValue,
  ),
]

export const getGivenEventFlags = ({ flags: { given } }: Pick<Context, 'flags'>): EventFlag[] =>
  given
    .map(({ flag, value = '' }) => ({ name: flag.slice(2), value }))
    .filter(({ name }) => eventFlagNames.includes(name))

type MessageBlock =
  | { type: 'text'; text: string }
  | { type: 'image' | 'document'; source: { type: 'base64'; media_type: string; data: string } }

export const messageFileKinds: AcceptedFileKinds = {
  mimeTypes: /^image\/|^application\/pdf$/,
  description: 'an image or PDF file',
}

export async function readFileBlocks(
  input: InputReader,
  paths: readonly string[] = [],
): Promise<MessageBlock[]> {
  const blocks: MessageBlock[] = []
  for (const path of paths) {
    const file = await input.readContent(path, messageFileKinds)
    if ('base64' in file) {
      const type = file.mimeType === 'application/pdf' ? 'document' : 'image'
      blocks.push({ type, source: { type: 'base64', media_type: file.mimeType, data: file.base64 } })
    } else blocks.push(createTextBlock(file.name === undefined ? file.text : `${file.name}:\n${file.text}`))
  }
  return blocks
}

/**
 * Returns the events of the flags as JSON, in the order of the flags. A message with the blocks in `content`
 * and the event of `--system` are last. Throws a usage error for an invalid value.
 */
export async function readEventFlags(
  input: InputReader,
  given: EventFlag[],
  content: readonly MessageBlock[],
): Promise<string[]> {
  /**
   * A string is the JSON of `--event`, which is sent unchanged. An object is any other event. Later flags may
   * add fields to an object with an outcome.
   */
  const events: (string | Record<string, unknown>)[] = []
  for (const flag of given.filter(({ name }) => name !== 'system')) {
    const { name, value } = flag
    const last = events.at(-1)
    if (name === 'rubric' || name === 'max-iterations') {
      if (!isObject(last) || last.type !== 'user.define_outcome')
        throw usageError(`--${name} must follow the --outcome that it belongs to`)
      if (name === 'rubric') last.rubric = { type: 'text', content: await readNonEmpty(input, flag) }
      else last.max_iterations = parseWholeNumber(value)
    } else events.push(await readEvent(input, flag))
  }
  if (content.length > 0) events.push({ type: 'user.message', content })
  for (const { value } of given.filter((flag) => flag.name === 'system'))
    events.push({
      type: 'system.message',
      content: [createTextBlock(await input.readFlagValue(value, '--system'))],
    })
  return events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)))
}

export const createTextBlock = (text: string): MessageBlock => ({ type: 'text', text })

function parseWholeNumber(value: string): number {
  if (/^(0|[1-9]\d{0,14})$/.test(value)) return Number(value)
  throw usageError(`--max-iterations must be a whole number of at most 15 digits, not '${value}'`)
}

async function readNonEmpty(input: InputReader, { name, value }: EventFlag): Promise<string> {
  const text = await input.readFlagValue(value, `--${name}`)
  if (text.trim() === '') throw usageError(`--${name} is empty`)
  return text
}

async function readEvent(input: InputReader, flag: EventFlag): Promise<string | Record<string, unknown>> {
  const { name, value } = flag
  const read = (text: string) => input.readFlagValue(text, `--${name}`)
  if (name === 'event') {
    const json = await read(value)
    parseInputJson(json, '--event')
    return json
  }
  if (name === 'outcome') return { type: 'user.define_outcome', description: await readNonEmpty(input, flag) }
  if (name === 'message')
    return { type: 'user.message', content: [createTextBlock(await readNonEmpty(input, flag))] }
  if (name === 'interrupt') return { type: 'user.interrupt' }
  if (name === 'interrupt-thread') {
    // A service may take an empty id as absent and interrupt all threads.
    if (value === '') throw usageError('--interrupt-thread is empty')
    return { type: 'user.interrupt', session_thread_id: value }
  }
  const [, id = '', text = ''] = /^([^=]+)=(.*)$/s.exec(value) ?? []
  if (id === '') throw usageError(`--${name} ${toOneLine(value, 60)}: must have the form ID=TEXT`)
  const type = name.startsWith('custom-') ? 'agent.custom_tool_use' : 'agent.tool_use'
  return createToolResultEvent({ id, type }, { text: await read(text), isError: name.endsWith('error') })
}
