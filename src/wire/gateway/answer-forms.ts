import { formatFieldPath, isObject } from '../json/parse.ts'
import { createUnexpectedBodyFailure } from '../problem/problem.ts'
import {
  readTokenCount,
  readTokenCounts,
  sumTokenCounts,
  type TokenCount,
  type TokenCounts,
} from '../token-count.ts'
import * as z from '../zod.ts'

export interface AnswerTokenCounts extends TokenCounts {
  /** Number of reasoning tokens, which `outputTokens` includes. */
  reasoningTokens?: TokenCount
  /** If absent, the total is the sum of input, output and both cache counts. */
  totalTokens?: TokenCount
}

export interface AnswerSummary extends AnswerTokenCounts {
  id?: string
  model?: string
  stopReason?: string
  /** True if the body was one JSON value without a stop reason. The answer may then have been cut. */
  lacksStopReason?: true
  stopMessage?: string
  continuationToken?: string
}

export const needsContinuation = ({ stopReason }: AnswerSummary): boolean => stopReason === 'CONTINUATION'

export interface AnswerPiece {
  text: string
  summary: AnswerSummary
  otherContent: NonTextContent[]
}

/**
 * Names that parley prints for kinds of content other than text. Each pattern matches the name of a field, a
 * MIME type or the type of a block.
 */
const otherContentNames = [
  [/image|^inline/i, 'a picture'],
  [/file|\//i, 'a file'],
  [/thought|think|reason/i, 'thoughts'],
  [/^server|result$|response$/i, 'work of a server tool'],
  [/tool|function|json/i, 'a function call'],
  [/code/i, 'code'],
] as const

export type NonTextContent =
  | (typeof otherContentNames)[number][1]
  | 'another candidate'
  | 'content after its end'
  | 'replaced bytes'
  | 'something else'

const classifyContent = (name: string): NonTextContent =>
  otherContentNames.find(([pattern]) => pattern.test(name))?.[1] ?? 'something else'

function readAs<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = formatFieldPath(issue?.path ?? []) || 'the body'
  throw createUnexpectedBodyFailure(
    value,
    `the answer has another shape than documented: ${path}: ${issue?.message}`,
  )
}

/**
 * Makes a field optional, and drops a value of another type. So a field that parley only displays cannot make
 * the answer invalid.
 */
const lenient = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const lenientText = lenient(z.string())
const optionalText = z.nullish(z.string())

const toBlock = (value: unknown): unknown => (typeof value === 'string' ? { text: value } : value)

function toBlocks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBlock)
  const block = toBlock(value)
  return typeof block === 'object' && block !== null ? [block] : block
}

const normalized = <T extends z.ZodMiniType>(normalize: (value: unknown) => unknown, schema: T) =>
  z.pipe(z.transform(normalize), schema)

const messages = z.buildOnFirstUse(() => {
  const block = z.looseObject({ type: lenientText, text: optionalText })
  const content = normalized(toBlocks, z.array(block))
  const whole = z.looseObject({ id: lenientText, content, model: lenientText, stop_reason: lenientText })
  const event = z.looseObject({
    message: z.nullish(z.extend(whole, { content: z.nullish(content) })),
    content_block: z.nullish(normalized(toBlock, block)),
    delta: z.nullish(normalized(toBlock, z.extend(block, { stop_reason: lenientText }))),
  })
  return { block, whole, event }
})
type Block = z.infer<ReturnType<typeof messages>['block']>

export const isMessageAnswer = (value: unknown): boolean =>
  isObject(value) &&
  Object.hasOwn(value, 'content') &&
  (typeof value.type !== 'string' || value.type === 'message')

/** Reads a whole answer in the Messages format (src/wire/README.md: gateway, 2.3). */
export function readMessageAnswer(value: unknown): AnswerPiece {
  const message = readAs(messages().whole, value)
  return createPiece(message.content, message)
}

export const isMessageEvent = (value: unknown): value is { type: string } =>
  isObject(value) && typeof value.type === 'string' && /^(message|content_block)_|^ping$/.test(value.type)

/** Reads an event of a stream in the Messages format (src/wire/README.md: public clients, 7). */
export function readMessageEvent(value: unknown): AnswerPiece {
  const { message, content_block: block, delta, usage } = readAs(messages().event, value)
  const blocks = [...(message?.content ?? []), ...(block ? [block] : []), ...(delta ? [delta] : [])]
  const stopReason = delta?.stop_reason ?? message?.stop_reason
  const used = Object.assign({}, ...[message?.usage, usage].filter(isObject))
  return createPiece(blocks, { ...message, stop_reason: stopReason, usage: used })
}

interface MessageFacts {
  id?: string
  model?: string
  stop_reason?: string
  usage?: unknown
}

function createPiece(blocks: Block[], { id, model, stop_reason, usage }: MessageFacts): AnswerPiece {
  const others = blocks.filter((block) => !isText(block) && !/^$|signature|citation/i.test(block.type ?? ''))
  return {
    text: blocks.map((block) => (isText(block) ? block.text : '')).join(''),
    summary: { id, model, stopReason: stop_reason || undefined, ...readTokenCounts(usage) },
    otherContent: others.map(({ type = '' }) => classifyContent(type)),
  }
}

const isText = ({ type = '', text }: Block): boolean =>
  typeof text === 'string' && !/think|reason|tool|function|signature|citation|json/i.test(type)

/**
 * Returns the text of a `text_delta`. Uses no schema, because most events of a stream are text deltas, and
 * a schema is slow.
 */
export function readTextDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

/** A whole body in the native format (src/wire/README.md: gateway, 2.2), or one chunk of a stream. */
const NativeAnswer = z.buildOnFirstUse(() => {
  /** Some services send a number instead of the name of a finish or block reason. */
  const name = lenient(z.union([z.string(), z.number()]))
  const part = z.looseObject({ text: optionalText, thought: lenient(z.boolean()) })
  const content = z.looseObject({ parts: z.nullish(normalized(toBlocks, z.array(part))) })
  const candidate = z.looseObject({
    index: lenient(z.number()),
    content: z.nullish(normalized(toContent, content)),
    finishReason: name,
    finishMessage: lenientText,
    continuationToken: lenientText,
  })
  return z.looseObject({
    candidates: z.nullish(z.array(candidate)),
    promptFeedback: lenient(z.looseObject({ blockReason: name, blockReasonMessage: lenientText })),
    responseId: lenientText,
    modelVersion: lenientText,
  })
})
type NativeCandidate = NonNullable<z.infer<ReturnType<typeof NativeAnswer>>['candidates']>[number]

const toContent = (value: unknown): unknown => (typeof value === 'string' ? { parts: value } : value)

export interface NativeAnswerPiece extends AnswerPiece {
  /** True if the candidate that parley prints has ended. `undefined` if the chunk does not have it. */
  isFinished: boolean | undefined
  /** Token counts of the whole answer up to this chunk, not of this chunk alone. */
  counts: AnswerTokenCounts | undefined
}

export const isNativeAnswer = (value: unknown): boolean =>
  isObject(value) && nativeNames.some((name) => Object.hasOwn(value, name))

const nativeNames = ['candidates', 'promptFeedback', 'usageMetadata']

export function readNativeAnswer(value: unknown): NativeAnswerPiece {
  const { promptFeedback, usageMetadata, ...answer } = readAs(NativeAnswer(), value)
  const all = answer.candidates ?? []
  const first = all.find((candidate) => (candidate.index ?? 0) === 0)
  const isUnread = first !== undefined && !hasKnownShape(first)
  // `readReason` replaces a number by the name of a finish reason. The numbers of block reasons have other
  // meanings, so `readReason` gets a block reason as text, which it does not replace.
  const blockReason = readReason(String(promptFeedback?.blockReason || ''))
  const others = all.filter((candidate) => candidate !== first)
  const stopReason = readReason(first?.finishReason) ?? blockReason
  return {
    text: first ? getText(first) : '',
    summary: {
      id: answer.responseId,
      model: answer.modelVersion,
      stopReason,
      stopMessage: first?.finishMessage || promptFeedback?.blockReasonMessage || undefined,
      continuationToken: first?.continuationToken || undefined,
    },
    counts: isObject(usageMetadata) ? readCounts(usageMetadata) : undefined,
    isFinished: first || blockReason ? stopReason !== undefined : undefined,
    otherContent: [
      ...all.flatMap(getParts).flatMap(listOtherContent),
      ...(others.some((candidate) => getText(candidate) !== '') ? ['another candidate' as const] : []),
      ...(isUnread ? ['something else' as const] : []),
    ],
  }
}

function listOtherContent(part: Record<string, unknown>): NonTextContent[] {
  const names = Object.keys(part).filter((name) => part[name] && !/^(text|thoughtSignature)$/.test(name))
  return names.map((name) => {
    const data = part[name]
    const mimeType = isObject(data) ? (data.mimeType ?? data.mime_type) : undefined
    return classifyContent(typeof mimeType === 'string' ? mimeType : name)
  })
}

const getParts = (candidate: NativeCandidate) => candidate.content?.parts ?? []

const getText = (candidate: NativeCandidate): string =>
  getParts(candidate)
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('')

const hasKnownShape = ({ content }: NativeCandidate): boolean =>
  Object.keys(content ?? {}).every((name) => name === 'role' || name === 'parts')

/** Names of the finish reasons 1 to 9. Some services send the number instead of the name. */
const finishReasons =
  'STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL'.split(
    ' ',
  )

function readReason(reason: string | number = ''): string | undefined {
  const name = typeof reason === 'number' ? (finishReasons[reason - 1] ?? String(reason || '')) : reason
  return /^$|_UNSPECIFIED$/.test(name) ? undefined : name
}

function subtractTokens(total: TokenCount | undefined, part: TokenCount | undefined): TokenCount | undefined {
  if (total === undefined || part === undefined) return undefined
  if (total === null || part === null) return null
  return total < part ? undefined : total - part
}

function readCounts(usage: Record<string, unknown>): AnswerTokenCounts {
  // `promptTokenCount` excludes the results of the service's own tools, which are input, too.
  const inputTokens = sumTokenCounts(
    readTokenCount(usage.promptTokenCount),
    readTokenCount(usage.toolUsePromptTokenCount),
  )
  const reasoningTokens = readTokenCount(usage.thoughtsTokenCount)
  const total = readTokenCount(usage.totalTokenCount)
  const generatedTokens = sumTokenCounts(readTokenCount(usage.candidatesTokenCount), reasoningTokens)
  const outputTokens = generatedTokens === undefined ? subtractTokens(total, inputTokens) : generatedTokens
  // `promptTokenCount` includes the cached tokens, so they are not added again.
  const sum = sumTokenCounts(inputTokens, outputTokens)
  return {
    inputTokens,
    outputTokens,
    cacheReadInputTokens: readTokenCount(usage.cachedContentTokenCount),
    reasoningTokens,
    // Some services send a total of 0 next to larger parts, so parley ignores a total of 0.
    totalTokens: total || (sum === undefined ? total : sum),
  }
}
