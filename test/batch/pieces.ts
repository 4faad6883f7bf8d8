import type { BatchLineCall, BatchSource, PrepareBatchLine } from '../../src/batch/input.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import { parseLines, temporaryFolder } from '../harness/run.ts'

/** Streams a text or bytes in chunks of this size. */
export async function* streamOf(whole: string | Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(whole as string)
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

export type Ask = BatchLineCall['send']

/** Creates an input that can be read once, like a pipe, or again, like a file. */
export const sourceOf = (
  whole: string | AsyncIterable<Uint8Array>,
  { isRepeatable = false, name = 'prompts.ndjson' } = {},
): BatchSource => ({
  name,
  isRepeatable,
  read: () => (typeof whole === 'string' ? streamOf(whole) : whole),
  close() {},
})

/** Prepares the simplest request with the content of the line. */
export const preparing =
  (ask: Ask): PrepareBatchLine =>
  (form) => ({
    model: form.model ?? 'test-model',
    body: 'prompt' in form ? JSON.stringify(form.prompt) : form.body,
    send: ask,
  })

/** Prepares a request that is never sent. */
export const prepare = preparing(() => Promise.reject(new Error('no request is expected')))

export const failure = (kind: FailureKind, details: FailureDetails = {}) =>
  new CliError(kind, `it ended with ${kind}`, details)

export interface Result {
  index: number
  id?: string | number
  hash: string
  ok: boolean
  text?: string
  files?: string[]
  response?: unknown
  stopReason?: string
  warning?: string
  attempts?: number
  error?: { kind: string; exit: number; status?: number; sent: string; attempts: number }
}

/** Parses the complete lines. */
export const parseResults = (text: string): Result[] => parseLines(text.slice(0, text.lastIndexOf('\n') + 1))

export const indexes = (results: { index: number }[]) => results.map(({ index }) => index)

export const inOrder = (results: Result[]) => results.toSorted((one, other) => one.index - other.index)

export const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1)

/** Creates a folder with the input `in.ndjson`: a text, lines, or a number of lines with the prompts `p 1`, … */
export function batchFolder(input: string | string[] | number): string {
  const lines =
    typeof input === 'number' ? upTo(input).map((index) => `{"id":"i${index}","prompt":"p ${index}"}`) : input
  return temporaryFolder({ 'in.ndjson': typeof lines === 'string' ? lines : `${lines.join('\n')}\n` })
}
