import { isUtf8 } from 'node:buffer'
import { hash as digest } from 'node:crypto'
import { promises as fs } from 'node:fs'
import type { Context } from '../context.ts'
import type { DeliveryState } from '../delivery-state.ts'
import {
  CliError,
  createUsageErrorFromProblems,
  formatProblemCount,
  maxCountedProblems,
  toFileFailure,
  usageError,
} from '../errors.ts'
import { describeUtf8Fix } from '../io/file-content.ts'
import { openReadableFile, readStream } from '../io/input.ts'
import { toAbsolutePath } from '../io/paths.ts'
import { type RawLine, splitLines } from '../io/raw-lines.ts'
import { addCountsToSums } from '../report-data.ts'
import type { AnswerTokenCounts } from '../wire/gateway/answer-forms.ts'
import { describeJsonError } from '../wire/json/parse.ts'
import { countKnownTokens, type TokenCount } from '../wire/token-count.ts'
import type { BatchOptions } from './flags.ts'
import type { BatchLineRegistry } from './line-registry.ts'
import { type BatchLineId, type ParsedBatchLine, parseBatchLine } from './parsed-line.ts'

export interface BatchLineAnswer {
  /** `json` and `response` are JSON source text. */
  content: {
    files?: string[] | undefined
    links?: string[] | undefined
    text?: string | undefined
    json?: string
    response?: string | undefined
  }
  model?: string | undefined
  /** `null` if the answer may be cut, because it has no stop reason or its stream has no end. */
  stopReason?: string | null | undefined
  warning?: string | undefined
}

export interface BatchLineCall {
  model: string
  body: string
  /**
   * Requests the answer, in several parts if necessary, and adds the usage to the line. Before each further
   * part, calls `requireNext`, which throws if the batch allows no further request. Does not retry: after a
   * failure, another call continues the same answer. Throws a `CliError`.
   */
  send(line: BatchLine, requireNext: () => void): Promise<BatchLineAnswer>
  /**
   * Returns the failure with the received part of the answer, or `undefined` if nothing was received.
   * Synchronous, because signal handlers call it.
   */
  addReceivedPart?(failure: CliError): CliError | undefined
}

/** Throws a usage error for an invalid line. */
export type PrepareBatchLine = (form: ParsedBatchLine) => BatchLineCall

export interface BatchLine {
  index: number
  id?: BatchLineId
  /** Hash of model and body. The hash of a duplicate ends with `#2`, `#3`. */
  hash: string
  call: BatchLineCall
  attempts: number
  /** Number of answers, including answers that failed a check. */
  answers: number
  /** Sum of the token counts of all answers. Keys are the names of the fields in the results. */
  readonly usage: Record<string, TokenCount>
  readonly tally: BatchTally
  seconds: number
  /** Number of failed requests that count for `--retries`. Requests that paused all lines do not count. */
  failures: number
  /** Failure of a line that waits for a retry. If the batch stops first, the failure is the line's result. */
  failure?: CliError | undefined
  mayDuplicate?: boolean
  /** Returns how far the latest request of the line got. `undefined` until a request starts. */
  getDeliveryState?: (() => DeliveryState) | undefined
}

export interface BatchSource {
  name: string
  /** True for a file. parley reads a file twice, first to check every line before it sends a request. */
  isRepeatable: boolean
  read(): AsyncIterable<Uint8Array>
  /** Ends the reading. A silent pipe would otherwise keep the process alive. */
  close(): void
}

/** Counts of a run. With `--share`, only the lines of the share count. */
export class BatchTally {
  /** Number of lines. `undefined` until the end of a pipe. */
  total?: number
  /** True if the input has a line, even if that line belongs to another share. */
  hasLine = false
  ok = 0
  /** Successful lines whose results have a warning. */
  warned = 0
  failed = 0
  readonly failures: Record<string, number> = {}
  skipped = 0
  /** Results that could not be written to their destination and were printed or saved in another file. */
  savedElsewhere = 0
  /** Lines that the batch ended without an answer, although their requests may be billed. */
  unanswered = 0
  /** Tokens of this run and of earlier runs. Answers without a token count add nothing. */
  tokens = 0
  earlierTokens = 0
  /** True if an answer of this or an earlier run has no token count, so `tokens` is a minimum. */
  hasUncountedAnswer = false
  hasAnswer = false

  get left(): number | undefined {
    return this.total === undefined ? undefined : this.total - this.ok - this.failed - this.skipped
  }

  get hasSucceeded(): boolean {
    return this.left === 0 && this.failed === 0
  }
}

/**
 * Counts an answer of a line. Call this as soon as the usage is known, because the answer is billed even if a
 * later step fails.
 */
export function recordAnswerUsage(line: BatchLine, usage: AnswerTokenCounts | undefined): void {
  addCountsToSums(line.usage, usage, line.answers++)
  line.tally.hasAnswer = true
  line.tally.tokens += countKnownTokens({ ...usage })
  line.tally.hasUncountedAnswer ||= typeof usage?.totalTokens !== 'number'
}

export async function openBatchSource({ input, host }: Context, name: string): Promise<BatchSource> {
  // Otherwise parley would add the lines of the pipe to the words of the prompt.
  const isPipe = name === '/dev/stdin' && host.stdin.kind === 'pipe'
  if (name === '-' || isPipe) {
    const chunks = input.readStdinChunks(`--batch ${name}`)
    const close = () => void host.stdin.open().destroy()
    return { name: 'stdin', isRepeatable: false, read: () => chunks, close }
  }
  const path = toAbsolutePath(host, name)
  try {
    const stat = await fs.stat(path)
    if (stat.isDirectory()) throw new CliError('file', `${name}: it is a folder`)
    await fs.access(path, fs.constants.R_OK)
    const closing = new AbortController()
    const read = () => readStream((stop) => openReadableFile(path, stop), name, closing.signal)
    return { name, isRepeatable: stat.isFile(), read, close: () => closing.abort() }
  } catch (error) {
    throw toFileFailure(error, name)
  }
}

const maxLineMebibytes = 64
const maxLineBytes = maxLineMebibytes * 1024 * 1024

export function decodeBatchLine({ bytes }: RawLine): { text: string } | { problem: string } {
  if (!bytes) return { problem: `it is longer than ${maxLineMebibytes} MiB` }
  if (!isUtf8(bytes)) return { problem: `it is not UTF-8 text: ${describeUtf8Fix(bytes)}` }
  // `trim` also removes a byte order mark.
  return { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().trim() }
}

export interface BatchInput {
  source: BatchSource
  prepare: PrepareBatchLine
  registry: BatchLineRegistry
  tally: BatchTally
  share?: BatchOptions['share'] | undefined
}

/**
 * Reads the lines of a batch, in chunks. Checks a whole file first, and throws a usage error that lists every
 * invalid line. With `--share`, also checks the lines of other shares. So an invalid line stops every share,
 * and the hash of a duplicate ends with the same `#2` or `#3` in each share.
 */
export async function readBatchInput(input: BatchInput): Promise<AsyncIterable<Iterable<BatchLine>>> {
  const { source, registry, tally, share: { start, of } = { start: 1, of: 1 } } = input
  const bad: BadLine[] = []
  const refuse = () => invalidLinesError(bad, source.name)
  let total = 0
  function* check(lines: Iterable<RawLine>): Generator<BatchLine, void, undefined> {
    for (const raw of lines) {
      const created = createLine(raw, input, registry)
      if (!created) continue
      if ('problem' in created) {
        bad.push(created)
        if (!source.isRepeatable || bad.length > maxCountedProblems) throw refuse()
        continue
      }
      tally.hasLine = true
      if ((raw.lineNumber - start) % of !== 0) continue
      total++
      if (created.isDone) tally.skipped++
      else yield created.line
    }
  }
  async function* read() {
    for await (const lines of splitLines(source.read(), maxLineBytes)) yield check(lines)
    tally.total = total
  }

  if (!source.isRepeatable) return read()
  const checked: CheckedLines = { fingerprints: [], duplicates: new Map() }
  for await (const lines of read()) {
    for (const { index, hash } of lines) {
      checked.fingerprints[index] = getShortFingerprint(hash)
      if (hash.includes('#')) checked.duplicates.set(index, hash)
    }
  }
  if (bad.length > 0) throw refuse()
  return rereadLines(input, checked)
}

/** Lines that passed the check. Whole hashes would take more memory, so only 28 bits of each are stored. */
interface CheckedLines {
  /** The index is the line number. A line that is not requested has no element. */
  fingerprints: number[]
  duplicates: Map<number, string>
}

/** Returns 28 bits of the hash, so parley overlooks a changed line with a probability of 1 in 2^28. */
const getShortFingerprint = (hash: string) => Number.parseInt(hash.slice(0, 7), 16)

/** Throws a `CliError` if the file has changed since the check. */
async function* rereadLines(
  input: BatchInput,
  { fingerprints, duplicates }: CheckedLines,
): AsyncGenerator<Iterable<BatchLine>, void, undefined> {
  if (fingerprints.length === 0) return
  const { source } = input
  let lineNumber = 0
  const changed = (what: string) =>
    new CliError('file', `${source.name}: ${what} while the batch ran, so no later line was requested`)
  function* open(lines: Iterable<RawLine>): Generator<BatchLine, void, undefined> {
    for (const raw of lines) {
      lineNumber = raw.lineNumber
      const fingerprint = fingerprints[lineNumber]
      if (fingerprint === undefined) continue
      const created = createLine(raw, input)
      if (!created || 'problem' in created || getShortFingerprint(created.line.hash) !== fingerprint)
        throw changed(`line ${lineNumber} was changed`)
      yield Object.assign(created.line, { hash: duplicates.get(lineNumber) ?? created.line.hash })
    }
  }
  for await (const lines of splitLines(source.read(), maxLineBytes)) {
    yield open(lines)
    if (lineNumber >= fingerprints.length - 1) return
  }
  throw changed('it was truncated')
}

interface BadLine {
  index: number
  problem: string
  hint?: string
}

const notJsonHint = 'jq -R . converts each line of plain text to JSON'

function createLine(
  raw: RawLine,
  { prepare, tally }: BatchInput,
  registry?: BatchLineRegistry,
): { line: BatchLine; isDone: boolean } | BadLine | undefined {
  const { lineNumber: index } = raw
  const decoded = decodeBatchLine(raw)
  if ('problem' in decoded) return { index, ...decoded }
  const { text } = decoded
  if (text === '') return undefined
  try {
    const form = parseBatchLine(text)
    const call = prepare(form)
    const { id } = form
    const base = digest('sha256', `${call.model}\0${call.body}`).slice(0, 32)
    const { hash, isDone } = registry?.addLine({ id, hash: base }) ?? { hash: base, isDone: false }
    return {
      line: { index, id, hash, call, attempts: 0, answers: 0, usage: {}, tally, seconds: 0, failures: 0 },
      isDone,
    }
  } catch (error) {
    return { index, ...describeProblem(error, text) }
  }
}

function describeProblem(error: unknown, text: string): Omit<BadLine, 'index'> {
  if (error instanceof SyntaxError) {
    const place = describeJsonError(text).replace('line 1, ', '')
    return { problem: `it is not JSON: ${place}`, hint: notJsonHint }
  }
  if (!(error instanceof CliError) || error.kind !== 'usage') throw error
  const { problems } = error.details
  return { problem: problems ? `${error.message}: ${problems.slice(0, 3).join('; ')}` : error.message }
}

function invalidLinesError(bad: BadLine[], name: string): CliError {
  const hint = bad.find((line) => line.hint)?.hint
  const problems = bad.map(({ index, problem }) => `line ${index}: ${problem}`)
  const isSame = bad.length > 1 && bad.every(({ problem }) => problem === bad[0]?.problem)
  const error = isSame
    ? usageError(`${name}: ${formatProblemCount(bad)} of the same kind: ${problems[0]}`)
    : createUsageErrorFromProblems(name, problems)
  return error.with(hint ? { consequence: hint } : {})
}
