import { isUtf8 } from 'node:buffer'
import { hash as digest } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { type BatchUsage, LineUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import {
  asFileError,
  CliError,
  createUsageErrorFromProblems,
  maxCountedProblems,
  usageError,
} from '../errors.ts'
import { openReadable, readStream } from '../io/input.ts'
import { absolutePath } from '../io/paths.ts'
import { splitLines } from '../io/raw-lines.ts'
import { utf8Advice } from '../io/utf8.ts'
import { describeJsonError } from '../wire/json/parse.ts'
import type { Ledger } from './ledger.ts'
import { type Id, type LineForm, parseLine } from './line-form.ts'

/** Answer to one line. */
export interface LineAnswer {
  /** One of these forms. `json` and `response` are JSON source text. */
  content:
    | { text: string }
    | { files: string[]; links?: string[] | undefined; text?: string | undefined }
    | { json: string }
    | { response: string }
  model?: string | undefined
  stopReason?: string | undefined
  /** Defects of the answer. */
  warning?: string | undefined
}

/** Request of one line. */
export interface LineCall {
  model: string
  body: Uint8Array
  /**
   * Sends the request once. Continues an incomplete answer with further requests, unless `requireNext`
   * throws. Adds the usage to the line. Throws a `CliError`. The batch decides about a retry, which continues
   * an incomplete answer.
   */
  send(line: BatchLine, requireNext: () => void): Promise<LineAnswer>
  /**
   * Adds the received part of an incomplete answer to a failure. Returns `undefined` if nothing was received.
   * Synchronous, because signal handlers call it.
   */
  addReceived?(failure: CliError): CliError | undefined
}

/** Creates the request of a line. Throws a usage error if the line is invalid. */
export type PrepareLine = (form: LineForm) => LineCall | Promise<LineCall>

/** A line of a batch, from its input to its result. */
export interface BatchLine {
  /** Line number, from 1. */
  index: number
  id?: Id
  /** Hash of model and body, with `#2`, `#3` for duplicates. */
  hash: string
  call: LineCall
  /** Usage of the requests that this run sent for the line. */
  spent: LineUsage
  /** Duration of the last request. */
  seconds: number
  /** Number of failed requests of the line. Requests that paused all lines do not count. */
  failures: number
  /** Failure of the last request while the line waits for its own retry. */
  failure?: CliError | undefined
  /** A failed request of the line may have been carried out. */
  mayDuplicate?: boolean
}

/** Bytes of a batch's input: a file, or stdin. */
export interface BatchSource {
  /** Name for messages. */
  name: string
  /** The source can be read twice, so it is checked before anything is sent. */
  isRepeatable: boolean
  read(): AsyncIterable<Uint8Array>
  /** Ends reading, because a silent pipe would keep the process alive. */
  close(): void
}

/** The lines of `--share place/of`: every `of`th line, starting with line `place`. The first line is 1. */
export interface Share {
  place: number
  of: number
}

/** Progress of a batch: the numbers of lines in each state, among the lines that this run handles. */
export class Tally implements BatchUsage {
  /**
   * Number of lines that this run handles (`--share`). It is `undefined` until a piped input has been read to
   * its end.
   */
  total?: number
  /** The input has a line with a request, even if another run handles it (`--share`). */
  hasLine = false
  ok = 0
  failed = 0
  /** Number of failed lines by failure kind. */
  readonly failures: Record<string, number> = {}
  /** Number of lines that an earlier run finished. */
  skipped = 0
  /** Number of results that are not in their destination: saved in another file, or printed. */
  elsewhere = 0
  /** Tokens of all answers with a token count, including earlier runs. */
  tokens = 0
  /** Tokens of earlier runs, included in `tokens`. */
  earlierTokens = 0
  /** Some answers of this or an earlier run have no token count. */
  isPartial = false
  /** This run has received an answer. */
  isAnswered = false
}

/** Lines that this run handles (`--share`) and that no earlier run has finished. */
export interface BatchInput {
  tally: Tally
  /** Throws a `CliError` for an invalid line or a failed read. */
  lines: AsyncIterable<BatchLine>
}

/** Opens a file, or stdin for `-`. Throws a `CliError`. */
export async function openSource({ input, host }: Context, name: string): Promise<BatchSource> {
  if (name === '') throw usageError('--batch needs a file, or - for stdin')
  if (name === '-') {
    if (input.stdinKind === 'terminal')
      throw usageError('--batch -: stdin is a terminal; give a file or a pipe')
    const close = () => void host.stdin.open().destroy()
    return { name: 'stdin', isRepeatable: false, read: () => input.readStdinChunks('--batch -'), close }
  }
  const path = absolutePath(host, name)
  try {
    const stat = await fs.stat(path)
    if (stat.isDirectory()) throw new CliError('file', `${name}: it is a folder`)
    await fs.access(path, fs.constants.R_OK)
    const closing = new AbortController()
    const read = () => readStream((stop) => openReadable(path, stop), name, closing.signal)
    return { name, isRepeatable: stat.isFile(), read, close: () => closing.abort() }
  } catch (error) {
    throw asFileError(error, name)
  }
}

/** A non-empty input line: its text, or its problem. */
export type TextLine = { index: number; text: string } | BadLine

const mebibyte = 1024 * 1024
const maxLineMebibytes = 64

/** Reads the lines of a batch one by one, with line numbers from 1. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = maxLineMebibytes * mebibyte,
): AsyncGenerator<TextLine, void, undefined> {
  let index = 0
  for await (const lines of splitLines(chunks, maxLineBytes)) {
    for (const { bytes } of lines) {
      index++
      if (!bytes) yield { index, problem: `it is longer than ${maxLineBytes / mebibyte} MiB` }
      else if (!isUtf8(bytes)) yield { index, problem: `it is not UTF-8 text: ${utf8Advice(bytes)}` }
      else {
        // `toString` also removes a byte order mark.
        const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().trim()
        if (text !== '') yield { index, text }
      }
    }
  }
}

/**
 * Reads the lines of a batch. Checks a whole file first, and throws a usage error that lists every invalid
 * line. Also checks and counts the lines of other shares: an invalid line stops every share, and a duplicate
 * has the same number in each share.
 */
export async function readInput(
  source: BatchSource,
  prepare: PrepareLine,
  ledger: Ledger,
  { place, of }: Share = { place: 1, of: 1 },
): Promise<BatchInput> {
  const tally = new Tally()
  async function* read(onBad: (line: BadLine) => void): AsyncGenerator<BatchLine, void, undefined> {
    let total = 0
    for await (const text of readLines(source.read())) {
      const made = await createLine(text, prepare, tally, ledger)
      if ('problem' in made) {
        onBad(made)
        continue
      }
      tally.hasLine = true
      if ((made.line.index - place) % of !== 0) continue
      total++
      if (made.isDone) tally.skipped++
      else yield made.line
    }
    tally.total = total
  }

  const bad: BadLine[] = []
  const refuse = () => invalidLinesError(bad, source.name)
  const lines = read((line) => {
    bad.push(line)
    if (!source.isRepeatable || bad.length > maxCountedProblems) throw refuse()
  })
  if (!source.isRepeatable) return { tally, lines }
  const checked: CheckedLines = { numbers: [], fingerprints: [], repeated: new Map() }
  for await (const { index, hash } of lines) {
    checked.numbers.push(index)
    checked.fingerprints.push(getFingerprint(hash))
    if (hash.includes('#')) checked.repeated.set(index, hash)
  }
  if (bad.length > 0) throw refuse()
  return { tally, lines: rereadLines(source, prepare, tally, checked) }
}

/**
 * Lines to request, as arrays of small integers, because their hashes would take several times the memory.
 */
interface CheckedLines {
  numbers: number[]
  /** Fingerprints of the hashes. */
  fingerprints: number[]
  /** Hashes of duplicates by line number. */
  repeated: Map<number, string>
}

/**
 * Returns the part of a hash that fits into a small integer. On average, one of 2^28 changes of a line is not
 * detected.
 */
const getFingerprint = (hash: string) => Number.parseInt(hash.slice(0, 7), 16)

/** Reads the lines with these numbers again. Throws a `CliError` if the file has changed since its check. */
async function* rereadLines(
  source: BatchSource,
  prepare: PrepareLine,
  tally: Tally,
  { numbers, fingerprints, repeated }: CheckedLines,
): AsyncGenerator<BatchLine, void, undefined> {
  if (numbers.length === 0) return
  const changed = (what: string) =>
    new CliError('file', `${source.name}: ${what} while the batch ran: no later line was requested`)
  let next = 0
  for await (const text of readLines(source.read())) {
    if (text.index !== numbers[next]) continue
    const made = await createLine(text, prepare, tally)
    if ('problem' in made || getFingerprint(made.line.hash) !== fingerprints[next])
      throw changed(`line ${text.index} was changed`)
    yield { ...made.line, hash: repeated.get(text.index) ?? made.line.hash }
    next++
    if (next === numbers.length) return
  }
  throw changed('it was truncated')
}

interface BadLine {
  index: number
  problem: string
  /** Advice for correcting the line. */
  hint?: string
}

const notJson = 'jq -R . converts each line of plain text to JSON'

type CreatedLine = { line: BatchLine; isDone: boolean } | BadLine

/** Creates a line and adds it to the ledger, or describes its problem. */
async function createLine(
  text: TextLine,
  prepare: PrepareLine,
  tally: Tally,
  ledger?: Ledger,
): Promise<CreatedLine> {
  if ('problem' in text) return text
  const { index } = text
  try {
    const form = parseLine(text.text)
    const call = await prepare(form)
    const { id } = form
    const base = hashRequest(call)
    const { hash, isDone } = ledger?.addLine({ id, hash: base }) ?? { hash: base, isDone: false }
    return { line: { index, id, hash, call, spent: new LineUsage(tally), seconds: 0, failures: 0 }, isDone }
  } catch (error) {
    return { index, ...describeProblem(error, text.text) }
  }
}

/** Computes the hash of model and body: 32 hexadecimal digits. */
const hashRequest = ({ model, body }: LineCall): string =>
  digest('sha256', Buffer.concat([Buffer.from(`${model}\0`), body])).slice(0, 32)

function describeProblem(error: unknown, text: string): Omit<BadLine, 'index'> {
  if (error instanceof SyntaxError) {
    const place = describeJsonError(text).replace('line 1, ', '')
    return { problem: `it is not JSON: ${place}`, hint: notJson }
  }
  if (!(error instanceof CliError) || error.kind !== 'usage') throw error
  const { problems } = error.details
  return { problem: problems ? `${error.message}: ${problems.slice(0, 3).join('; ')}` : error.message }
}

function invalidLinesError(bad: BadLine[], name: string): CliError {
  const hint = bad.find((line) => line.hint)?.hint
  return createUsageErrorFromProblems(
    name,
    bad.map(({ index, problem }) => `line ${index}: ${problem}`),
  ).with(hint ? { consequence: hint } : {})
}
