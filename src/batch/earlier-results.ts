import { longestText } from '../wire/json/encoder.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import type { Ledger } from './ledger.ts'
import { cutLines } from './line-cutter.ts'

/** What an earlier run has left. */
export interface Earlier {
  /** How many of its lines are results. */
  results: number
  /** What all of them took. */
  tokens: number
  /** Where the last whole line ends. Bytes. */
  end: number
  /** What is behind that. */
  tail: 'none' | 'torn' | 'whole'
  /** How many of its lines are none. */
  others: number
}

/** A line of the results, as far as it matters later. */
interface Result {
  id?: string | number
  hash: string
  isOk: boolean
  tokens: number
}

/** Every line of the results begins so. */
const opening = Buffer.from('{"index":')

/** What some editors put before the first line. */
const byteOrderMark = Buffer.from('\ufeff')

/** Reads results into the ledger. `tokensOf` finds what an answer took where the line itself does not say. */
export async function readEarlier(
  chunks: AsyncIterable<Uint8Array>,
  ledger: Ledger,
  tokensOf: (line: Record<string, unknown>) => number | undefined,
): Promise<Earlier> {
  const earlier: Earlier = { results: 0, tokens: 0, end: 0, tail: 'none', others: 0 }
  let start = 0
  for await (const { bytes: found, end, isWhole } of cutLines(chunks, longestText)) {
    const bytes = start === 0 ? withoutMark(found) : found
    start = end
    const result = bytes && readResult(bytes, tokensOf)
    if (result) {
      ledger.recall(result)
      earlier.results++
      earlier.tokens += result.tokens
    } else if (isWhole || !bytes || !isBeginning(bytes)) earlier.others++
    if (isWhole) earlier.end = end
    else earlier.tail = result ? 'whole' : 'torn'
  }
  return earlier
}

const withoutMark = (bytes: Uint8Array | undefined) =>
  bytes && byteOrderMark.equals(bytes.subarray(0, byteOrderMark.length))
    ? bytes.subarray(byteOrderMark.length)
    : bytes

function readResult(
  bytes: Uint8Array,
  tokensOf: (line: Record<string, unknown>) => number | undefined,
): Result | undefined {
  const line = tryParseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString())
  if (!isObject(line) || typeof line.hash !== 'string' || typeof line.ok !== 'boolean') return undefined
  const { id, hash, ok } = line
  // What failed a check was paid for too.
  const tokens = totalOf(line.usage) ?? (ok ? tokensOf(line) : undefined)
  return {
    ...(typeof id === 'string' || typeof id === 'number' ? { id } : {}),
    hash,
    isOk: ok,
    tokens: tokens !== undefined && tokens >= 0 && Number.isFinite(tokens) ? tokens : 0,
  }
}

const totalOf = (usage: unknown): number | undefined =>
  isObject(usage) && typeof usage.totalTokens === 'number' ? usage.totalTokens : undefined

/** Of a line that was cut off while it was written. */
function isBeginning(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length, opening.length)
  return opening.subarray(0, length).equals(bytes.subarray(0, length))
}
