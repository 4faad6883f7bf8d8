import { rmSync } from 'node:fs'
import type { Context } from '../context.ts'
import { CliError, toFileFailure } from '../errors.ts'
import { AppendedFile } from '../io/appended-file.ts'
import { type FileLock, lock } from '../io/lock.ts'
import { absolutePath } from '../io/paths.ts'
import { splitLines } from '../io/raw-lines.ts'
import { addSummaryFile, type Summary } from '../summary.ts'
import { maxTextLength } from '../wire/json/body-text.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import type { LineLedger } from './ledger.ts'

export class EarlierResults {
  results = 0
  /** Tokens of all results, except of answers without a token count. */
  tokens = 0
  isPartial = false
  /** Offset after the last complete line, in bytes. */
  end = 0
  /**
   * Text after the last line break: `whole` is a result without its line break, `torn` is the start of a
   * result, and `foreign` is other text.
   */
  tail: 'none' | 'torn' | 'whole' | 'foreign' = 'none'
  otherLines = 0
}

/** Check that depends on the command (`chat` or `image`). */
export interface ResultHandlers {
  hasFiles?(line: Record<string, unknown>): boolean
}

export interface ResultsOptions {
  name: string
  isResumed: boolean | undefined
  ledger: LineLedger
  handlers: ResultHandlers
}

/**
 * Opens and locks the results file. With `--resume`, adds its results to the ledger and removes an incomplete
 * last line. Throws a `CliError` of kind `file`.
 */
export async function openResults(
  { host, deadline, messages, summary, cleanups }: Context,
  { name, isResumed = false, ledger, handlers }: ResultsOptions,
): Promise<ResultsFile> {
  const path = absolutePath(host, name)
  const refusal = isResumed ? undefined : 'it already exists; --resume continues it'
  const open = () => new AppendedFile({ path, name, refusal })
  let file = open()
  let held: FileLock | undefined
  try {
    held = await lock(path, { name, deadline, messages })
    // While this run waited for the lock, the other run may have removed its file, because the file had no
    // result.
    if (isResumed && file.findChange() !== undefined) {
      const former = file
      file = open()
      former.close()
    }
    const earlier = isResumed ? await readEarlierResults(file.read(), ledger, handlers) : new EarlierResults()
    // A file without any result is not a results file, so the run fails and does not change the file.
    if (earlier.results === 0 && earlier.otherLines > 0)
      throw new CliError('file', `${name}: it contains no batch results to resume; give another file`)
    if (earlier.tail === 'foreign')
      throw new CliError('file', `${name}: its last line is not a result of a batch; remove that line`)
    if (earlier.tail === 'torn') file.truncate(earlier.end)
    if (earlier.tail === 'whole') file.append('\n')
    const results = new ResultsFile(file, held, { path, name, isResumed, earlier, summary })
    if (earlier.results > 0) addSummaryFile(summary, name)
    cleanups.add(results.close)
    return results
  } catch (error) {
    // Removes a new file only with the lock. Without the lock, another run may be using the file.
    if (held && !isResumed) rmSync(path, { force: true })
    held?.release()
    file.close()
    throw toFileFailure(error, name)
  }
}

interface OpenedResults {
  path: string
  name: string
  isResumed: boolean
  earlier: EarlierResults
  summary: Summary
}

export class ResultsFile {
  readonly #file: AppendedFile
  readonly #lock: FileLock
  readonly #opened: OpenedResults

  constructor(file: AppendedFile, lock: FileLock, opened: OpenedResults) {
    this.#file = file
    this.#lock = lock
    this.#opened = opened
  }

  get earlier(): EarlierResults {
    return this.#opened.earlier
  }

  /**
   * Throws a `CliError` if another process has taken over the file, or if it was removed, replaced or
   * truncated.
   */
  requireOwned(): void {
    this.#file.requireUnchanged()
    this.#lock.requireHeld()
  }

  /** Appends a whole line, or nothing. Throws a `CliError` if writing fails. */
  write(line: string): void {
    this.requireOwned()
    const { size } = this.#file
    try {
      this.#file.append(`${line}\n`)
    } catch (error) {
      this.#file.truncate(size)
      throw error
    }
    addSummaryFile(this.#opened.summary, this.#opened.name)
  }

  /** Removes a new file that is still empty. */
  readonly close = (): void => {
    const { path, isResumed } = this.#opened
    const isUntouched = this.#file.findChange() === undefined && this.#lock.isHeld()
    if (this.#file.size === 0 && !isResumed && isUntouched) rmSync(path, { force: true })
    this.#file.close()
    this.#lock.release()
  }
}

/** Starts of a result, with 0 instead of its line number. */
const resultPrefixes = ['{"index":0,"id":', '{"index":0,"hash":']

export async function readEarlierResults(
  chunks: AsyncIterable<Uint8Array>,
  ledger: LineLedger,
  handlers: ResultHandlers,
): Promise<EarlierResults> {
  const earlier = new EarlierResults()
  for await (const lines of splitLines(chunks, maxTextLength)) {
    for (const { bytes, end, isWhole } of lines) {
      const result = bytes && readResult(bytes, handlers)
      const isTorn = !isWhole && !result && bytes !== undefined && isIncompleteResult(bytes)
      if (result) {
        ledger.addResult(result)
        earlier.results++
        earlier.tokens += result.tokens ?? 0
        if (result.tokens === null) earlier.isPartial = true
      } else if (!isTorn) earlier.otherLines++
      if (isWhole) earlier.end = end
      else if (result) earlier.tail = 'whole'
      else earlier.tail = isTorn ? 'torn' : 'foreign'
    }
  }
  return earlier
}

function readResult(bytes: Uint8Array, { hasFiles }: ResultHandlers) {
  const line = tryParseJson(decodeText(bytes))
  if (!isObject(line) || typeof line.hash !== 'string' || typeof line.ok !== 'boolean') return undefined
  const { id, hash, ok, usage } = line
  // An answer that failed a check was paid for too, so its tokens count.
  const tokens = isObject(usage) ? usage.totalTokens : undefined
  const isAnswered = ok || usage !== undefined
  return {
    ...(typeof id === 'string' || typeof id === 'number' ? { id } : {}),
    hash,
    isOk: ok && hasFiles?.(line) !== false,
    tokens: Number.isFinite(tokens) && (tokens as number) >= 0 ? (tokens as number) : isAnswered ? null : 0,
  }
}

function isIncompleteResult(bytes: Uint8Array): boolean {
  const text = decodeText(bytes)
  const head = text.slice(0, 40).replace(/\d+/g, '0')
  const isOurs = resultPrefixes.some((opening) => opening.startsWith(head) || head.startsWith(opening))
  return isOurs && tryParseJson(text) === undefined
}

const decoder = new TextDecoder()

/** Also removes the byte order mark that some editors add. */
const decodeText = (bytes: Uint8Array): string => decoder.decode(bytes)
