import { rmSync } from 'node:fs'
import type { Context } from '../context.ts'
import { asFileError, CliError } from '../errors.ts'
import { AppendedFile } from '../io/appended-file.ts'
import { type Lock, lockForRun } from '../io/lock.ts'
import { absolutePath } from '../io/paths.ts'
import { splitLines } from '../io/raw-lines.ts'
import { maxTextLength } from '../wire/json/body-text.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import type { Ledger } from './ledger.ts'

/** The results of earlier runs. */
export class EarlierResults {
  /** How many of its lines are results. */
  results = 0
  /** The tokens of all answers that say it. */
  tokens = 0
  /** Some of the answers do not say what they took. */
  isPartial = false
  /** The end of the last whole line. Bytes. */
  end = 0
  /** The text after that end: nothing, the beginning of a result, a whole result, or something else. */
  tail: 'none' | 'torn' | 'whole' | 'foreign' = 'none'
  /** How many of its lines are not results. */
  others = 0
}

/** Reads the parts of a result that only the command knows that made it. */
export interface ResultReader {
  /** Finds the tokens of an answer if its line has no `usage`. */
  readTokens(line: Record<string, unknown>): number | undefined
  /** Whether all that a good result names is still there. */
  hasFiles?(line: Record<string, unknown>): boolean
}

export interface ResultsOptions {
  /** As the person wrote it. */
  name: string
  isResumed: boolean | undefined
  ledger: Ledger
  reader: ResultReader
}

/**
 * Opens and locks a file for the results. With `--resume` a torn last line is removed, and the ledger gets the results. Throws
 * a `CliError` of kind `file`.
 */
export async function openResults(
  { host, limit, timers, note, cleanups }: Context,
  { name, isResumed = false, ledger, reader }: ResultsOptions,
): Promise<ResultsFile> {
  const path = absolutePath(host, name)
  const refusal = isResumed ? undefined : 'it exists already; --resume goes on with it'
  const open = () => new AppendedFile({ path, name, refusal })
  let file = open()
  let held: Lock | undefined
  try {
    held = await lockForRun(path, { name, deadline: limit.deadline, timers, note })
    // The run that was waited for removes its file if nothing came.
    if (isResumed && file.findChange() !== undefined) {
      const former = file
      file = open()
      former.close()
    }
    const earlier = isResumed ? await readEarlierResults(file.read(), ledger, reader) : new EarlierResults()
    // Whatever it is, it is not ours to change.
    if (earlier.results === 0 && earlier.others > 0)
      throw new CliError('file', `${name}: it has no results of a batch`)
    if (earlier.tail === 'foreign')
      throw new CliError('file', `${name}: its last line is not a result of a batch`)
    if (earlier.tail === 'torn') file.truncate(earlier.end)
    if (earlier.tail === 'whole') file.append('\n')
    const results = new ResultsFile(file, held, { path, name, isResumed, earlier })
    cleanups.add(results.close)
    return results
  } catch (error) {
    // Without the lock it may be somebody else's by now.
    if (held && !isResumed) rmSync(path, { force: true })
    held?.release()
    file.close()
    throw asFileError(error, name)
  }
}

interface OpenedResults {
  path: string
  name: string
  isResumed: boolean
  earlier: EarlierResults
}

/** A file that a batch's results are added to, whatever becomes of the batch. */
export class ResultsFile {
  readonly #file: AppendedFile
  readonly #lock: Lock
  readonly #opened: OpenedResults

  constructor(file: AppendedFile, lock: Lock, opened: OpenedResults) {
    this.#file = file
    this.#lock = lock
    this.#opened = opened
  }

  get earlier(): EarlierResults {
    return this.#opened.earlier
  }

  /** Throws a `CliError` if another run has taken over the file, or if it was removed, replaced or made shorter. */
  requireOwned(): void {
    this.#file.requireUnchanged()
    // Another run takes over the lock of a process that was suspended for long.
    if (!this.#lock.isHeld())
      throw new CliError('file', `${this.#opened.name}: another parley has taken it over`)
  }

  /** Adds a line, which is whole in the file or not there. Throws a `CliError` if it could not be written. */
  write(line: string): void {
    this.requireOwned()
    const { size } = this.#file
    try {
      this.#file.append(`${line}\n`)
    } catch (error) {
      this.#file.truncate(size)
      throw error
    }
  }

  /** Lets others write it; one that was made and has nothing in it is removed. */
  readonly close = (): void => {
    const { path, isResumed } = this.#opened
    const isUntouched = this.#file.findChange() === undefined && this.#lock.isHeld()
    if (this.#file.size === 0 && !isResumed && isUntouched) rmSync(path, { force: true })
    this.#file.close()
    this.#lock.release()
  }
}

/** Every line of the results begins like one of these, with its own number. */
const resultPrefixes = ['{"index":0,"id":', '{"index":0,"hash":']

/** Reads results into the ledger. */
export async function readEarlierResults(
  chunks: AsyncIterable<Uint8Array>,
  ledger: Ledger,
  reader: ResultReader,
): Promise<EarlierResults> {
  const earlier = new EarlierResults()
  for await (const lines of splitLines(chunks, maxTextLength)) {
    for (const { bytes, end, isWhole } of lines) {
      const result = bytes && readResult(bytes, reader)
      const isTorn = !isWhole && !result && bytes !== undefined && isIncompleteResult(bytes)
      if (result) {
        ledger.addResult(result)
        earlier.results++
        earlier.tokens += result.tokens ?? 0
        if (result.tokens === null) earlier.isPartial = true
      } else if (!isTorn) earlier.others++
      if (isWhole) earlier.end = end
      else if (result) earlier.tail = 'whole'
      else earlier.tail = isTorn ? 'torn' : 'foreign'
    }
  }
  return earlier
}

/** What of a line of the results matters later; `tokens` is `null` if an answer came without their count. */
function readResult(bytes: Uint8Array, { readTokens, hasFiles }: ResultReader) {
  const line = tryParseJson(decodeText(bytes))
  if (!isObject(line) || typeof line.hash !== 'string' || typeof line.ok !== 'boolean') return undefined
  const { id, hash, ok, usage } = line
  // An answer that failed a check was paid for too.
  const tokens = readTotalTokens(usage) ?? (ok ? readTokens(line) : undefined)
  const isAnswered = ok || usage !== undefined
  const isGone = ok && hasFiles?.(line) === false
  return {
    ...(typeof id === 'string' || typeof id === 'number' ? { id } : {}),
    hash,
    isOk: ok && !isGone,
    isGone,
    tokens: tokens !== undefined && tokens >= 0 && Number.isFinite(tokens) ? tokens : isAnswered ? null : 0,
  }
}

const readTotalTokens = (usage: unknown): number | undefined =>
  isObject(usage) && typeof usage.totalTokens === 'number' ? usage.totalTokens : undefined

/** Of a line that was cut off while it was written: one that is whole JSON was not. */
function isIncompleteResult(bytes: Uint8Array): boolean {
  const text = decodeText(bytes)
  const head = text.slice(0, 40).replace(/\d+/g, '0')
  const isOurs = resultPrefixes.some((opening) => opening.startsWith(head) || head.startsWith(opening))
  return isOurs && tryParseJson(text) === undefined
}

const decoder = new TextDecoder()

/** Without a byte order mark, which some editors put before the first line. */
const decodeText = (bytes: Uint8Array): string => decoder.decode(bytes)
