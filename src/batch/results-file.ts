import { rmSync, statSync } from 'node:fs'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { AppendedFile } from '../io/appended-file.ts'
import { acquireLock, type FileLock } from '../io/lock.ts'
import { toAbsolutePath } from '../io/paths.ts'
import { splitLines } from '../io/raw-lines.ts'
import { addFileToReport } from '../report-data.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import { maxTextLength } from '../wire/json/text-limit.ts'
import { toOneLineJson } from '../wire/page.ts'
import { countKnownTokens, readTokenCount } from '../wire/token-count.ts'
import type { BatchLine, BatchLineAnswer, BatchTally } from './input.ts'
import type { BatchLineRegistry } from './line-registry.ts'

export interface ResultsFileOptions {
  name: string
  isResumed: boolean | undefined
  registry: BatchLineRegistry
  tally: BatchTally
  /** Returns whether this run accepts an earlier run's successful result. If omitted, the run accepts all. */
  isAccepted?(result: Record<string, unknown>): boolean
}

export type ResultsFile = Awaited<ReturnType<typeof openResultsFile>>

/**
 * Opens and locks the results file. With `--resume`, adds its results to the registry and its tokens to the
 * tally, and removes an incomplete last result. Throws a `CliError` of kind `file`.
 */
export async function openResultsFile(
  { host, deadline, messages, reportData, cleanups }: Context,
  { name, isResumed = false, ...earlierRuns }: ResultsFileOptions,
) {
  const path = toAbsolutePath(host, name)
  const refusal = isResumed ? undefined : 'it already exists; --resume continues it'
  const file = new AppendedFile(path, name, refusal)
  let held: FileLock | undefined
  function removeUnused(): void {
    if (isResumed || file.findChange() !== undefined) return
    // Another run may have written results, so the size in the file system counts.
    if (statSync(path).size === 0) rmSync(path, { force: true })
  }

  try {
    const lock = await acquireLock(path, { name, deadline, messages })
    held = lock
    if (isResumed) {
      const earlier = await readEarlierResults(file.read(), earlierRuns)
      const { count, otherLines, firstOtherLine, incompleteResultOffset } = earlier
      // A file without any result is not a results file, so the run fails and does not change the file.
      if (count === 0 && otherLines > 0)
        throw new CliError('file', `${name}: it contains no batch results to resume; give another file`)
      if (otherLines > 0) messages.warn(`${name}: ${describeOtherLines(otherLines, firstOtherLine)}`)
      file.endLastLine(incompleteResultOffset)
      if (count > 0) addFileToReport(reportData, name)
    }

    function requireOwned(): void {
      file.requireUnchanged()
      lock.requireHeld()
    }

    function write(line: string): void {
      requireOwned()
      const { size } = file
      try {
        file.append(`${line}\n`)
      } catch (error) {
        file.truncate(size)
        throw error
      }
      addFileToReport(reportData, name)
    }

    function close(): void {
      if (lock.isHeld()) removeUnused()
      file.close()
      lock.release()
    }

    cleanups.add(close)
    return { requireOwned, write, close }
  } catch (error) {
    removeUnused()
    held?.release()
    file.close()
    throw error
  }
}

export async function readEarlierResults(
  chunks: AsyncIterable<Uint8Array>,
  { registry, tally, isAccepted }: Omit<ResultsFileOptions, 'name' | 'isResumed'>,
) {
  let count = 0
  let otherLines = 0
  let firstOtherLine = 0
  let incompleteResultOffset: number | undefined
  let end = 0
  for await (const lines of splitLines(chunks, maxTextLength)) {
    for (const line of lines) {
      const text = line.bytes && decoder.decode(line.bytes)
      const result = text === undefined ? undefined : readResult(text, isAccepted)
      if (result) {
        registry.addResult(result)
        count++
        tally.tokens += result.tokens
        tally.hasUncountedAnswer ||= result.isUncounted
      } else if (!line.isWhole && text !== undefined && isIncompleteResult(text)) incompleteResultOffset = end
      else if (text?.trim() !== '' && otherLines++ === 0) firstOtherLine = line.lineNumber
      end = line.endOffsetBytes
    }
  }
  tally.earlierTokens = tally.tokens
  return { count, otherLines, firstOtherLine, incompleteResultOffset }
}

const describeOtherLines = (count: number, first: number): string =>
  count === 1
    ? `line ${first} is not a result, so its request may be sent again`
    : `${count} lines, from line ${first}, are not results, so their requests may be sent again`

function readResult(text: string, isAccepted: ResultsFileOptions['isAccepted'] = () => true) {
  const line = tryParseJson(text)
  if (!isObject(line) || typeof line.hash !== 'string' || typeof line.ok !== 'boolean') return undefined
  const { id, hash, ok, usage } = line
  // An answer that failed a check was paid for too, so its tokens count.
  const counts = isObject(usage) ? usage : {}
  const isAnswered = ok || usage !== undefined
  return {
    ...(typeof id === 'string' || typeof id === 'number' ? { id } : {}),
    hash,
    isOk: ok && isAccepted(line),
    tokens: countKnownTokens(counts),
    isUncounted: isAnswered && typeof readTokenCount(counts.totalTokens) !== 'number',
  }
}

/** Start of every result. The 0 stands for the first digit of the line number. */
const resultStart = '{"index":0'

const isIncompleteResult = (text: string): boolean =>
  resultStart.startsWith(text.slice(0, resultStart.length).replace(/\d$/, '0')) &&
  tryParseJson(text) === undefined

/** Removes the byte order mark that some editors add. */
const decoder = new TextDecoder()

type ResultLine = Pick<BatchLine, 'index' | 'id' | 'hash' | 'attempts' | 'usage' | 'seconds'>

export function formatSuccessfulResult(subject: ResultLine, answer: BatchLineAnswer): string {
  const { content, model, stopReason, warning } = answer
  const { attempts, seconds } = subject
  const rest = { model, stopReason, warning, usage: findUsage(subject), attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

export const formatFailedResult = (subject: ResultLine, failureRecord: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error: failureRecord, usage: findUsage(subject) }).slice(1)}`

const findUsage = ({ usage }: ResultLine) => (Object.keys(usage).length > 0 ? usage : undefined)

const formatSubject = ({ index, id, hash }: ResultLine): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent({ json, response, ...others }: BatchLineAnswer['content']): string {
  const format = (name: string, source?: string) =>
    source === undefined ? '' : `"${name}":${toOneLineJson(source).trim()}`
  const fields = [JSON.stringify(others).slice(1, -1), format('json', json), format('response', response)]
  return fields.filter((field) => field !== '').join(',')
}
