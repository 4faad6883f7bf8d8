import type { LineUsage } from '../content/tokens.ts'
import { toOneLineJson } from '../wire/page.ts'
import type { BatchLine, LineAnswer } from './input.ts'

/** The line that a result belongs to. */
type ResultLine = Pick<BatchLine, 'index' | 'id' | 'hash' | 'spent' | 'seconds'>

/** A result as one line of JSON, without its line break. */
export function formatAnswer(subject: ResultLine, answer: LineAnswer): string {
  const { content, model, stopReason } = answer
  const { seconds, spent } = subject
  const { attempts, answers } = spent
  const usage = usageOf(spent)
  // The response itself says its usage, unless there were several.
  const rest =
    'response' in content
      ? { usage: answers > 1 ? usage : undefined, attempts, seconds }
      : { model, stopReason, usage, attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** The same for a line that failed; `error` is the failure as `--errors json` has it. */
export const formatFailure = (subject: ResultLine, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error, usage: usageOf(subject.spent) }).slice(1)}`

/** The sums of all answers, so that a later run knows the cost. */
const usageOf = ({ usage }: LineUsage) => (Object.keys(usage).length > 0 ? usage : undefined)

const formatSubject = ({ index, id, hash }: ResultLine): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: LineAnswer['content']): string {
  if ('json' in content) return `"json":${toOneLineJson(content.json).trim()}`
  if ('response' in content) return `"response":${toOneLineJson(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
