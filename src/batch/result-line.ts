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
  usage?: object
  /** All that it took; `undefined` where the service does not say. */
  tokens?: number
  attempts: number
  seconds: number
}

/** The line that a result belongs to. */
export interface Subject {
  index: number
  id?: Id
  hash: string
}

/** A result as one line of JSON, without its line break. */
export function formatAnswer(subject: Subject, answer: Answer): string {
  const { content, model, stopReason, usage, attempts, seconds } = answer
  const isRaw = 'response' in content
  const rest = isRaw ? { attempts, seconds } : { model, stopReason, usage, attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** The same for a line that failed; `error` is what the program says of a failure elsewhere. */
export const formatFailure = (subject: Subject, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error }).slice(1)}`

const formatSubject = ({ index, id, hash }: Subject): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: Answer['content']): string {
  if ('json' in content) return `"json":${onOneLine(content.json).trim()}`
  if ('response' in content) return `"response":${onOneLine(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
