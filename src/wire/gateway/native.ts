import { isObject } from '../json/parse.ts'
import { sumOf, type TokenCount } from '../token-count.ts'
import * as z from '../zod.ts'
import {
  type AnswerPiece,
  type Holding,
  normalized,
  optionalText,
  readAs,
  shown,
  shownNumber,
  shownText,
  toBlocks,
  tokenCount,
} from './answer-fields.ts'

/** A name, or its number in the family's binary form. */
const shownName = z.lazily(() => shown(z.union([z.string(), z.number()])))

const Parts = z.lazily(() =>
  normalized(toBlocks, z.array(z.looseObject({ text: optionalText(), thought: shown(z.boolean()) }))),
)

const NativeCandidate = z.lazily(() =>
  z.looseObject({
    index: shownNumber(),
    content: z.nullish(normalized(toContent, z.looseObject({ parts: z.nullish(Parts()) }))),
    finishReason: shownName(),
    finishMessage: shownText(),
  }),
)

const toContent = (value: unknown): unknown => (typeof value === 'string' ? { parts: value } : value)

/** The family's native answer: a whole body (gateway, 2.2) or one chunk of a stream. */
const NativeAnswer = z.lazily(() =>
  z.looseObject({
    candidates: z.nullish(z.array(NativeCandidate())),
    promptFeedback: shown(z.looseObject({ blockReason: shownName(), blockReasonMessage: shownText() })),
    responseId: shownText(),
    modelVersion: shownText(),
    usageMetadata: shown(
      z.looseObject({
        promptTokenCount: tokenCount(),
        candidatesTokenCount: tokenCount(),
        thoughtsTokenCount: tokenCount(),
        totalTokenCount: tokenCount(),
        cachedContentTokenCount: tokenCount(),
      }),
    ),
  }),
)

/** What one native chunk, or a whole native body, adds to an answer. */
export interface NativePiece extends AnswerPiece {
  /** Whether the candidate that is printed, and the others, are finished; absent if the chunk has none. */
  finish: { first?: boolean; others?: boolean }
  hasUsage: boolean
}

type NativeAnswer = z.infer<ReturnType<typeof NativeAnswer>>
type NativeCandidate = z.infer<ReturnType<typeof NativeCandidate>>

export const isNative = (value: unknown): boolean =>
  isObject(value) && nativeNames.some((name) => Object.hasOwn(value, name))

const nativeNames = ['candidates', 'promptFeedback', 'usageMetadata']

/** Reads a native answer. Throws a `CliError` if it has another shape. */
export function readNative(value: unknown): NativePiece {
  const { candidates, promptFeedback, usageMetadata, responseId, modelVersion } = readAs(
    NativeAnswer(),
    value,
  )
  const all = candidates ?? []
  const first = all.find((candidate) => (candidate.index ?? 0) === 0)
  const others = all.filter((candidate) => candidate !== first)
  const isUnread = first ? !hasKnownShape(first) : others.some((candidate) => textOf(candidate) !== '')
  const stopReason = reasonOf(first?.finishReason)
  const blockReason = reasonOf(promptFeedback?.blockReason, false)
  return {
    text: first ? textOf(first) : '',
    summary: {
      id: responseId,
      model: modelVersion,
      stopReason: stopReason ?? blockReason,
      stopMessage: first?.finishMessage || promptFeedback?.blockReasonMessage || undefined,
      ...countsOf(usageMetadata),
    },
    finish: {
      ...(first || blockReason ? { first: (stopReason ?? blockReason) !== undefined } : {}),
      ...(others.length > 0 ? { others: others.every(({ finishReason }) => reasonOf(finishReason)) } : {}),
    },
    hasUsage: usageMetadata !== undefined,
    holds: [...all.flatMap(partsOf).flatMap(holdingsOf), ...(isUnread ? ['something else' as const] : [])],
  }
}

function holdingsOf(part: Record<string, unknown>): Holding[] {
  const names = Object.keys(part).filter((name) => part[name] && !/^(text|thoughtSignature)$/.test(name))
  return names.map((name) => {
    const data = part[name]
    const found = holdings.get(name.replace('_', '').toLowerCase()) ?? 'something else'
    const isFile = isObject(data) && /^(?!image)/i.test(String(data.mimeType ?? data.mime_type ?? 'image'))
    return found === 'a picture' && isFile ? 'a file' : found
  })
}

/** The kinds of parts that are not text, by the name of their field. */
const holdings = new Map<string, Holding>([
  ['functioncall', 'a function call'],
  ['inlinedata', 'a picture'],
  ['filedata', 'a file'],
  ['executablecode', 'code'],
  ['codeexecutionresult', 'code'],
  ['thought', 'thoughts'],
])

const partsOf = (candidate: NativeCandidate) => candidate.content?.parts ?? []

const textOf = (candidate: NativeCandidate): string =>
  partsOf(candidate)
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('')

const hasKnownShape = ({ content }: NativeCandidate): boolean =>
  Object.keys(content ?? {}).every((name) => name === 'role' || name === 'parts')

/** The reasons, by their numbers from 1 in the family's binary form. */
const numbered =
  'STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL'.split(
    ' ',
  )

/** A reason's name, if a reason is given. The numbers for a blocked prompt are different ones. */
function reasonOf(reason: string | number | undefined, isNumbered = true): string | undefined {
  if (typeof reason === 'string') return /^$|_UNSPECIFIED$/.test(reason) ? undefined : reason
  if (!reason) return undefined
  return (isNumbered ? numbered[reason - 1] : undefined) ?? String(reason)
}

/** The rest of a total, if both are known. */
function restOf(total: TokenCount | undefined, part: TokenCount | undefined): TokenCount | undefined {
  if (total === undefined || part === undefined) return undefined
  if (total === null || part === null) return null
  return total < part ? undefined : total - part
}

function countsOf(usage: NativeAnswer['usageMetadata']): AnswerPiece['summary'] {
  if (!usage) return {}
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount, totalTokenCount } = usage
  const told = sumOf(candidatesTokenCount, thoughtsTokenCount)
  const outputTokens = told === undefined ? restOf(totalTokenCount, promptTokenCount) : told
  // The cached tokens are a part of the prompt's.
  const sum = sumOf(promptTokenCount, outputTokens)
  return {
    inputTokens: promptTokenCount,
    outputTokens,
    cacheReadInputTokens: usage.cachedContentTokenCount,
    reasoningTokens: thoughtsTokenCount,
    // Some services tell 0 beside parts that are more.
    totalTokens: totalTokenCount || (sum === undefined ? totalTokenCount : sum),
  }
}
