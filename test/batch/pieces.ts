import type { BatchLine, BatchLineCall, BatchSource, PrepareBatchLine } from '../../src/batch/input.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'

/** Streams a text or bytes in chunks of this size. */
export async function* streamOf(whole: string | Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(whole as string)
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

export type Ask = BatchLineCall['send']

export type TestLine = BatchLine

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
    body: Buffer.from('prompt' in form ? JSON.stringify(form.prompt) : form.body),
    send: ask,
  })

/** Prepares a request that is never sent. */
export const prepare = preparing(() => Promise.reject(new Error('no request is expected')))

export const failure = (kind: FailureKind, details: FailureDetails = {}) =>
  new CliError(kind, `it ended with ${kind}`, details)
