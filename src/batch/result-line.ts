import type { Spent } from '../content/spending.ts'
import { onOneLine } from '../wire/page.ts'
import type { Id } from './line-form.ts'

/** What came of one line that was answered. */
export interface Answer {
  /** One of these; `json` and `response` are JSON texts, shown as they are spelled. */
  content:
    | { text: string }
    | { files: string[]; links?: string[]; text?: string }
    | { json: string }
    | { response: string }
  model?: string
  stopReason?: string
  seconds: number
}

/** The line that a result belongs to. */
export interface Subject {
  index: number
  id?: Id
  hash: string
  spent: Spent
}

/** A result as one line of JSON, without its line break. */
export function formatAnswer(subject: Subject, answer: Answer): string {
  const { content, model, stopReason, seconds } = answer
  const { attempts, answers } = subject.spent
  const isRaw = 'response' in content
  const usage = usageOf(subject)
  // What a response says itself is not said again.
  const rest = isRaw
    ? { usage: answers > 1 ? usage : undefined, attempts, seconds }
    : { model, stopReason, usage, attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** The same for a line that failed; `error` is what the program says of a failure elsewhere. */
export const formatFailure = (subject: Subject, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error, usage: usageOf(subject) }).slice(1)}`

/** Of all answers, so that a later run knows what was paid. */
const usageOf = ({ spent: { answers, unmetered, usage } }: Subject) =>
  answers > unmetered ? usage : undefined

const formatSubject = ({ index, id, hash }: Subject): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: Answer['content']): string {
  if ('json' in content) return `"json":${onOneLine(content.json).trim()}`
  if ('response' in content) return `"response":${onOneLine(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
