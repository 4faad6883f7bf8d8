import { isUtf8 } from 'node:buffer'
import { hash as digest } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { LineUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { asFileError, CliError, maxCountedProblems, usageError, usageErrorOfProblems } from '../errors.ts'
import { openReadable, readStream } from '../io/input.ts'
import { absolutePath } from '../io/paths.ts'
import { splitLines } from '../io/raw-lines.ts'
import { utf8Advice } from '../io/utf8.ts'
import { describeJsonError } from '../wire/json/parse.ts'
import type { Ledger } from './ledger.ts'
import { type Id, type LineForm, parseLine } from './line-form.ts'

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
}

/** The request of one line. */
export interface LineCall {
  model: string
  body: Uint8Array
  /**
   * Sends it, once, and the requests that continue its answer if `requireNext` does not throw. Counts what they spend. Throws
   * a `CliError`: the batch decides whether to try again, which continues where the answer was.
   */
  send(line: BatchLine, requireNext: () => void): Promise<LineAnswer>
  /** Text of an answer that is not whole yet. */
  getPartialAnswer?(): string | undefined
}

/** Makes the call of a line. Throws a usage error if none can be made of it. */
export type PrepareLine = (form: LineForm) => LineCall | Promise<LineCall>

/** One line of a batch, from the input to its result. */
export interface BatchLine {
  /** Its number, from 1. */
  index: number
  id?: Id
  /** Of its model and body, with `#2`, `#3` if they come again. */
  hash: string
  call: LineCall
  /** In this run. */
  spent: LineUsage
  /** Number of `spent.tokens` that the tally has. */
  talliedTokens?: number
  /** How long its last request took. */
  seconds: number
  /** How many of its requests failed, but for those after which all paused. */
  failures: number
  /** That of its last request, while it waits to be asked again by itself. */
  failure?: CliError | undefined
  /** The outage in which it was the line that tries. */
  trialOutage?: number
}

/** A batch's input as bytes: a file, or stdin. */
export interface BatchSource {
  /** For messages. */
  name: string
  /** It can be read again, and so is checked before anything is sent. */
  isRepeatable: boolean
  read(): AsyncIterable<Uint8Array>
  /** Nothing more is read: a silent pipe does not keep the process running. */
  close(): void
}

/** A part of a batch: one line of every `of` lines. `place` counts from 1. */
export interface Share {
  place: number
  of: number
}

/** How far a batch has come, as far as is known by now: of its share, the number of lines of each kind. */
export class Tally {
  /** `undefined` as long as only the end of a pipe will tell. */
  total?: number
  /** A line has a request, in whichever share. */
  hasLine = false
  ok = 0
  failed = 0
  /** The number of failed lines by kind of failure. */
  readonly failures: Record<string, number> = {}
  /** Done by an earlier run. */
  skipped = 0
  /** Asked again because what their results name is gone. */
  missingFiles = 0
  /** The tokens of all answers that tell them, also of an earlier run. */
  tokens = 0
  /** The part of `tokens` that an earlier run spent. */
  earlierTokens = 0
  /** Some answers, of this or an earlier run, do not tell their tokens. */
  isPartial = false
  /** An answer came in this run. */
  isAnswered = false
}

/** The lines of a batch, or of a share of it, but for those that an earlier run has done. */
export interface BatchInput {
  tally: Tally
  /** Throws a `CliError` at a bad line, and if it cannot be read further. */
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

/** A line of a batch's input that is not empty: its text, or its problem. */
export type TextLine = { index: number; text: string } | BadLine

const mebibyte = 1024 * 1024
const maxLineMebibytes = 64

/** Reads the lines of a batch's input one by one, with their numbers from 1. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  longest = maxLineMebibytes * mebibyte,
): AsyncGenerator<TextLine, void, undefined> {
  let index = 0
  for await (const lines of splitLines(chunks, longest)) {
    for (const { bytes } of lines) {
      index++
      if (!bytes) yield { index, problem: `it is longer than ${longest / mebibyte} MiB` }
      else if (!isUtf8(bytes)) yield { index, problem: `it is not UTF-8 text: ${utf8Advice(bytes)}` }
      else {
        // This takes a byte order mark away too.
        const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().trim()
        if (text !== '') yield { index, text }
      }
    }
  }
}

/**
 * Reads the lines of a batch. A regular file is checked whole first: throws a usage error that names every bad line.
 * The lines of other shares are checked and entered too. So a bad line stops all shares alike, and a repeated line has
 * the same count in all of them.
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
      const made = await createLine(text, prepare, ledger)
      if ('problem' in made) {
        onBad(made)
        continue
      }
      tally.hasLine = true
      if ((made.line.index - place) % of !== 0) continue
      total++
      if (made.isGone) tally.missingFiles++
      if (made.isDone) tally.skipped++
      else yield made.line
    }
    tally.total = total
  }

  const bad: BadLine[] = []
  const refuse = () => refuseLines(bad, source.name)
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
  return { tally, lines: rereadLines(source, prepare, checked) }
}

/** The lines of a file that are to be asked, in lists of small numbers: their hashes would take several times the memory. */
interface CheckedLines {
  numbers: number[]
  /** Of each one's hash. */
  fingerprints: number[]
  /** The hashes with a count, by the line's number. */
  repeated: Map<number, string>
}

/** As much of a hash as fits a small number: a change goes unnoticed once in 2^28. */
const getFingerprint = (hash: string) => Number.parseInt(hash.slice(0, 7), 16)

/** Makes the lines of these numbers again. Throws a `CliError` if the file has changed since its check. */
async function* rereadLines(
  source: BatchSource,
  prepare: PrepareLine,
  { numbers, fingerprints, repeated }: CheckedLines,
): AsyncGenerator<BatchLine, void, undefined> {
  if (numbers.length === 0) return
  const changed = (what: string) =>
    new CliError('file', `${source.name}: ${what} while the batch ran: nothing after it was asked`)
  let next = 0
  for await (const text of readLines(source.read())) {
    if (text.index !== numbers[next]) continue
    const made = await createLine(text, prepare)
    if ('problem' in made || getFingerprint(made.line.hash) !== fingerprints[next])
      throw changed(`line ${text.index} was changed`)
    yield { ...made.line, hash: repeated.get(text.index) ?? made.line.hash }
    next++
    if (next === numbers.length) return
  }
  throw changed('it was made shorter')
}

interface BadLine {
  index: number
  problem: string
  /** A way out for the person. */
  hint?: string
}

const notJson = 'jq -R . makes a JSON text of each line of plain text'

type CreatedLine = { line: BatchLine; isDone?: boolean; isGone?: boolean } | BadLine

/** Makes a line, and enters it in a ledger, or names its problem. */
async function createLine(text: TextLine, prepare: PrepareLine, ledger?: Ledger): Promise<CreatedLine> {
  if ('problem' in text) return text
  const { index } = text
  try {
    const form = parseLine(text.text)
    const call = await prepare(form)
    const { id } = form
    const hash = hashRequest(call)
    const entered = ledger?.addLine({ id, hash })
    const line = {
      index,
      id,
      hash: entered?.hash ?? hash,
      call,
      spent: new LineUsage(),
      seconds: 0,
      failures: 0,
    }
    return { line, ...entered }
  } catch (error) {
    return { index, ...describeProblem(error, text.text) }
  }
}

/** The hash of model and body: 32 hexadecimal digits. */
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

function refuseLines(bad: BadLine[], name: string): CliError {
  const hint = bad.find((line) => line.hint)?.hint
  return usageErrorOfProblems(
    name,
    bad.map(({ index, problem }) => `line ${index}: ${problem}`),
  ).with(hint ? { consequence: hint } : {})
}
