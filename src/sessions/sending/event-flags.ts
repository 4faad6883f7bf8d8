import { type Command, Option } from 'commander'
import { TextFlag } from '../../argv/flags.ts'
import { usage } from '../../errors.ts'
import type { Input } from '../../io/input.ts'
import { describeJsonError, parseJson } from '../../wire/json/parse.ts'

/** An event flag as it was given. */
export interface EventFlag {
  name: string
  value: string
}

/** An event of a flag: as the JSON text that was given, or as a value, whose texts may be long. */
export type AddedEvent = { json: string } | { value: object }

const flags: [name: string, value: string, about: string][] = [
  ['message', '<text>', 'a message, like the words, or @FILE'],
  ['interrupt', '', 'interrupt every thread'],
  ['interrupt-thread', '<id>', 'interrupt one thread'],
  ['tool-result', '<id=text>', 'the result of a tool use, or ID=@FILE'],
  ['tool-error', '<id=text>', 'why a tool use failed, or ID=@FILE'],
  ['custom-tool-result', '<id=text>', 'the result of a custom tool use, or ID=@FILE'],
  ['custom-tool-error', '<id=text>', 'why a custom tool use failed, or ID=@FILE'],
  ['outcome', '<text>', 'what to work toward, or @FILE'],
  ['rubric', '<text>', 'how the outcome before it is judged, or @FILE'],
  ['max-iterations', '<n>', 'at most so many attempts at the outcome before it'],
  ['system', '<text>', 'privileged context, sent last, or @FILE'],
  ['event', '<json>', 'any event, as it is, or @FILE'],
]

/** The names of all event flags. */
export const eventFlags: readonly string[] = flags.map(([name]) => name)

/** Whether the flag's value is stdin's text. */
export const asksForStdin = ({ name, value }: EventFlag): boolean =>
  value === '@-' || (/^(custom-)?tool-/.test(name) && /^[^=]+=@-$/.test(value))

/** Declares the event flags so that their order is kept; they are read from the option `eventFlags`. */
export function declareEventFlags(command: Command): void {
  const given: EventFlag[] = []
  for (const [name, value, about] of flags) {
    const spelled = `--${name}${value ? ` ${value}` : ''}`
    command.addOption(about.includes('@FILE') ? new TextFlag(spelled, about) : new Option(spelled, about))
    command.on(`option:${name}`, (value: string | null) => given.push({ name, value: value ?? '' }))
  }
  command.setOptionValue('eventFlags', given)
}

/**
 * The events of the flags, in the order they were written, then the words as one message, then
 * `--system`. A text that was piped is a second block of that message. Throws a usage error.
 */
export async function readEventFlags(
  input: Input,
  given: EventFlag[],
  { words, piped }: { words: string[]; piped: string },
): Promise<AddedEvent[]> {
  const events: AddedEvent[] = []
  let outcome: OutcomeFlags | undefined
  const finishOutcome = () => {
    if (outcome) events.push(toOutcomeEvent(outcome))
    outcome = undefined
  }
  for (const { name, value } of given.filter((flag) => flag.name !== 'system')) {
    if (name === 'rubric' || name === 'max-iterations') {
      if (!outcome) throw usage(`--${name} must follow the --outcome that it belongs to`)
      if (name === 'rubric') outcome.rubric = await input.value(value, '--rubric')
      else outcome.maxIterations = requireDigits(value)
      continue
    }
    finishOutcome()
    if (name === 'outcome') {
      outcome = { description: await input.value(value, '--outcome') }
    } else events.push(await toEvent(input, name, value))
  }
  finishOutcome()
  if (words.length > 0) {
    const content = [await wordsBlock(input, words)]
    if (piped !== '') content.push(textBlock(piped))
    events.push({ value: { type: 'user.message', content } })
  }
  for (const { value } of given.filter((flag) => flag.name === 'system')) {
    const content = [textBlock(await input.value(value, '--system'))]
    events.push({ value: { type: 'system.message', content } })
  }
  return events
}

const textBlock = (text: string) => ({ type: 'text', text })

async function wordsBlock(input: Input, words: string[]) {
  const text = await input.words(words, 'the message')
  if (text.trim() === '') throw usage('the message is empty')
  return textBlock(text)
}

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
  return { json: `${JSON.stringify(value).slice(0, -1)},"max_iterations":${maxIterations}}` }
}

function requireDigits(value: string): string {
  if (/^(0|[1-9]\d*)$/.test(value)) return value
  throw usage(`--max-iterations must be a whole number, not '${value}'`)
}

async function toEvent(input: Input, name: string, value: string): Promise<AddedEvent> {
  if (name === 'event') return { json: await requireJson(await input.value(value, '--event')) }
  return { value: await toValue(input, name, value) }
}

async function toValue(input: Input, name: string, value: string): Promise<object> {
  if (name === 'message') {
    return { type: 'user.message', content: [textBlock(await input.value(value, '--message'))] }
  }
  if (name === 'interrupt') return { type: 'user.interrupt' }
  if (name === 'interrupt-thread') return { type: 'user.interrupt', session_thread_id: value }
  return toolResult(input, name, value)
}

async function toolResult(input: Input, name: string, value: string): Promise<object> {
  const [, id = '', text = ''] = /^([^=]+)=(.*)$/s.exec(value) ?? []
  if (id === '') throw usage(`--${name} must have the form ID=TEXT`)
  const isCustom = name.startsWith('custom-')
  return {
    type: isCustom ? 'user.custom_tool_result' : 'user.tool_result',
    [isCustom ? 'custom_tool_use_id' : 'tool_use_id']: id,
    content: [textBlock(await input.value(text, `--${name}`))],
    ...(name.endsWith('error') ? { is_error: true } : {}),
  }
}

async function requireJson(text: string): Promise<string> {
  try {
    parseJson(text)
    return text
  } catch {
    throw usage(`--event: not valid JSON: ${await describeJsonError(text)}`)
  }
}
