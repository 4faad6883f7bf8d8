import type { BatchLineUsage } from '../content/tokens.ts'
import { toOneLineJson } from '../wire/page.ts'
import type { BatchLine, BatchLineAnswer } from './input.ts'

type ResultLine = Pick<BatchLine, 'index' | 'id' | 'hash' | 'seconds'> & {
  spent: Pick<BatchLineUsage, 'attempts' | 'usage'>
}

export function formatSuccessfulResult(subject: ResultLine, answer: BatchLineAnswer): string {
  const { content, model, stopReason, warning } = answer
  const { seconds, spent } = subject
  const rest = { model, stopReason, warning, usage: findUsage(spent), attempts: spent.attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** `error` has the form of `--errors json`. */
export const formatFailedResult = (subject: ResultLine, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error, usage: findUsage(subject.spent) }).slice(1)}`

const findUsage = ({ usage }: ResultLine['spent']) => (Object.keys(usage).length > 0 ? usage : undefined)

const formatSubject = ({ index, id, hash }: ResultLine): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: BatchLineAnswer['content']): string {
  if ('json' in content) return `"json":${toOneLineJson(content.json).trim()}`
  if ('response' in content) return `"response":${toOneLineJson(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
