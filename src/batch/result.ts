import type { Spent } from '../content/tokens.ts'
import { onOneLine } from '../wire/page.ts'
import type { BatchLine, LineCall } from './input.ts'

/** The answer to one line. */
export interface LineAnswer {
  /** One of these; `json` and `response` are JSON texts, shown as they are spelled. */
  content:
    | { text: string }
    | { files: string[]; links?: string[] | undefined; text?: string | undefined }
    | { json: string }
    | { response: string }
  model?: string | undefined
  stopReason?: string | undefined
  seconds: number
}

/** The line that a result belongs to. */
type Subject = Pick<BatchLine<LineCall>, 'index' | 'id' | 'hash' | 'spent'>

/** A result as one line of JSON, without its line break. */
export function formatAnswer(subject: Subject, answer: LineAnswer): string {
  const { content, model, stopReason, seconds } = answer
  const { attempts, answers } = subject.spent
  const usage = usageOf(subject.spent)
  // The response itself says its usage, unless there were several.
  const rest =
    'response' in content
      ? { usage: answers > 1 ? usage : undefined, attempts, seconds }
      : { model, stopReason, usage, attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** The same for a line that failed; `error` is the failure as `--errors json` has it. */
export const formatFailure = (subject: Subject, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error, usage: usageOf(subject.spent) }).slice(1)}`

/** The sums of all answers, so that a later run knows the cost. */
const usageOf = ({ usage }: Spent) => (Object.keys(usage).length > 0 ? usage : undefined)

const formatSubject = ({ index, id, hash }: Subject): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: LineAnswer['content']): string {
  if ('json' in content) return `"json":${onOneLine(content.json).trim()}`
  if ('response' in content) return `"response":${onOneLine(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
