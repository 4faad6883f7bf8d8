import { formatPath, isObject } from '../json/parse.ts'
import { failureInstead } from '../problem/problem.ts'
import {
  readCacheCreation,
  readTokenCount,
  sumOf,
  type TokenCount,
  type TokenCounts,
} from '../token-count.ts'
import * as z from '../zod.ts'

/** The tokens of an answer, as far as it tells them. */
export interface AnswerCounts extends TokenCounts {
  /** A part of the output's. */
  reasoningTokens?: TokenCount
  /** If it is absent, it is the sum of the input, the output and both caches. */
  totalTokens?: TokenCount
}

/** The facts about an answer besides its text. A stream adds to them as it comes. */
export interface AnswerSummary extends AnswerCounts {
  /** The service's own name for the answer. */
  id?: string
  model?: string
  stopReason?: string
  /** The service's own explanation of it. */
  stopMessage?: string
}

/** What one JSON value adds to an answer. */
export interface AnswerPiece {
  text: string
  /** What it says about the answer; `undefined` if it says nothing. */
  summary: AnswerSummary
  /** What it has beside text. */
  holds: Holding[]
}

/** What an answer may have beside text, by the name of a part's field, a MIME type, or the type of a block. */
const holdings = [
  [/image|^inline/i, 'a picture'],
  [/file|\//i, 'a file'],
  [/thought|think|reason/i, 'thoughts'],
  [/tool|function|json/i, 'a function call'],
  [/code/i, 'code'],
] as const

export type Holding = (typeof holdings)[number][1] | 'something else'

const holdingOf = (name: string): Holding =>
  holdings.find(([pattern]) => pattern.test(name))?.[1] ?? 'something else'

/** Reads a value by a schema. Throws a `CliError` that names the place that does not fit. */
function readAs<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = formatPath(issue?.path ?? []) || 'the body'
  throw failureInstead(value, `the answer has another shape than documented: ${path}: ${issue?.message}`)
}

/** A field that is only shown: of another type it counts as absent. */
const shown = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const optionalText = z.lazily(() => z.nullish(z.string()))
const shownText = z.lazily(() => shown(z.string()))
const tokenCount = z.lazily(() => normalized(readTokenCount, z.optional(z.nullable(z.number()))))

/** Makes a plain string a block with that text. */
const toBlock = (value: unknown): unknown => (typeof value === 'string' ? { text: value } : value)

/** The same for a list; one block alone need not be in a list. */
function toBlocks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBlock)
  const block = toBlock(value)
  return typeof block === 'object' && block !== null ? [block] : block
}

/** A schema for what `normalize` makes of a value. */
const normalized = <T extends z.ZodMiniType>(normalize: (value: unknown) => unknown, schema: T) =>
  z.pipe(z.transform(normalize), schema)

const Block = z.lazily(() => z.looseObject({ type: shownText(), text: optionalText() }))
const Blocks = z.lazily(() => normalized(toBlocks, z.array(Block())))
type Block = z.infer<ReturnType<typeof Block>>

const MessageUsage = z.lazily(() =>
  shown(
    z.looseObject({
      input_tokens: tokenCount(),
      output_tokens: tokenCount(),
      cache_read_input_tokens: tokenCount(),
    }),
  ),
)

/** The chat endpoint's success body (gateway, 2.3). */
const Message = z.lazily(() =>
  z.looseObject({
    id: shownText(),
    content: Blocks(),
    model: shownText(),
    stop_reason: shownText(),
    usage: MessageUsage(),
  }),
)
type Message = z.infer<ReturnType<typeof Message>>

/** One of a message stream's own events (public clients, 7); only what is printed is read. */
const MessageEvent = z.lazily(() =>
  z.looseObject({
    message: z.nullish(z.extend(Message(), { content: z.nullish(Blocks()) })),
    content_block: z.nullish(normalized(toBlock, Block())),
    delta: z.nullish(normalized(toBlock, z.extend(Block(), { stop_reason: shownText() }))),
    usage: MessageUsage(),
  }),
)

export const isMessage = (value: unknown): boolean =>
  isObject(value) &&
  Object.hasOwn(value, 'content') &&
  (typeof value.type !== 'string' || value.type === 'message')

/** Reads a whole message (gateway, 2.3). Throws a `CliError` if it has another shape. */
export function readMessage(value: unknown): AnswerPiece {
  const { content, ...facts } = readAs(Message(), value)
  return pieceOf(content, facts)
}

export const isMessageEvent = (value: unknown): value is { type: string } =>
  isObject(value) && typeof value.type === 'string' && /^(message|content_block)_|^ping$/.test(value.type)

/** Reads one event of a message stream (public clients, 7). Throws a `CliError` if it has another shape. */
export function readMessageEvent(value: { type: string }): AnswerPiece {
  if (value.type === 'message_stop') return pieceOf([], {})
  const { message, content_block: block, delta, usage } = readAs(MessageEvent(), value)
  const blocks = [...(message?.content ?? []), ...(block ? [block] : []), ...(delta ? [delta] : [])]
  return pieceOf(blocks, {
    ...message,
    stop_reason: delta?.stop_reason ?? message?.stop_reason,
    usage: { ...message?.usage, ...usage },
  })
}

/** What a message's blocks are, and what it says of itself. */
function pieceOf(
  blocks: Block[],
  facts: Partial<Pick<Message, 'id' | 'model' | 'stop_reason' | 'usage'>>,
): AnswerPiece {
  const { id, model, stop_reason: stopReason, usage } = facts
  const others = blocks.filter((block) => !isText(block) && !/^$|signature|citation/i.test(block.type ?? ''))
  return {
    text: blocks.map((block) => (isText(block) ? block.text : '')).join(''),
    summary: {
      id,
      model,
      stopReason,
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      cacheReadInputTokens: usage?.cache_read_input_tokens,
      cacheCreationInputTokens: usage && readCacheCreation(usage),
    },
    holds: others.map(({ type = '' }) => holdingOf(type)),
  }
}

/** Whether a block is a part of the answer's text. */
const isText = ({ type = '', text }: Block): boolean =>
  typeof text === 'string' && !/think|reason|tool|function|signature|citation|json/i.test(type)

/** The text of the most frequent event. It is read without a schema, which would be slow. */
export function textDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

/** A name, or its number in the family's binary form. */
const shownName = z.lazily(() => shown(z.union([z.string(), z.number()])))

const Parts = z.lazily(() =>
  normalized(toBlocks, z.array(z.looseObject({ text: optionalText(), thought: shown(z.boolean()) }))),
)

const NativeCandidate = z.lazily(() =>
  z.looseObject({
    index: shown(z.number()),
    content: z.nullish(normalized(toContent, z.looseObject({ parts: z.nullish(Parts()) }))),
    finishReason: shownName(),
    finishMessage: shownText(),
  }),
)

const toContent = (value: unknown): unknown => (typeof value === 'string' ? { parts: value } : value)

const NativeUsage = z.lazily(() =>
  z.looseObject({
    promptTokenCount: tokenCount(),
    candidatesTokenCount: tokenCount(),
    thoughtsTokenCount: tokenCount(),
    totalTokenCount: tokenCount(),
    cachedContentTokenCount: tokenCount(),
  }),
)

/** The family's native answer: a whole body (gateway, 2.2) or one chunk of a stream. */
const NativeAnswer = z.lazily(() =>
  z.looseObject({
    candidates: z.nullish(z.array(NativeCandidate())),
    promptFeedback: shown(z.looseObject({ blockReason: shownName(), blockReasonMessage: shownText() })),
    responseId: shownText(),
    modelVersion: shownText(),
    usageMetadata: shown(NativeUsage()),
  }),
)

/** What one native chunk, or a whole native body, adds to an answer. */
export interface NativePiece extends AnswerPiece {
  /** Whether the candidate that is printed, and any of the others, continues after this chunk; absent if it has none. */
  isOpen: { first?: boolean; others?: boolean }
  /** Of all that came so far: none of an earlier chunk's counts stays. */
  counts: AnswerCounts | undefined
}

type NativeCandidate = z.infer<ReturnType<typeof NativeCandidate>>

export const isNative = (value: unknown): boolean =>
  isObject(value) && nativeNames.some((name) => Object.hasOwn(value, name))

const nativeNames = ['candidates', 'promptFeedback', 'usageMetadata']

/** Reads a native answer. Throws a `CliError` if it has another shape. */
export function readNative(value: unknown): NativePiece {
  const { promptFeedback, usageMetadata, ...answer } = readAs(NativeAnswer(), value)
  const all = answer.candidates ?? []
  const first = all.find((candidate) => (candidate.index ?? 0) === 0)
  const isUnread = first ? !hasKnownShape(first) : all.some((candidate) => textOf(candidate) !== '')
  // The numbers for a blocked prompt are different ones.
  const blockReason = reasonOf(String(promptFeedback?.blockReason || ''))
  const others = all.filter((candidate) => candidate !== first)
  const continues = (candidate?: NativeCandidate) => !(reasonOf(candidate?.finishReason) ?? blockReason)
  return {
    text: first ? textOf(first) : '',
    summary: {
      id: answer.responseId,
      model: answer.modelVersion,
      stopReason: reasonOf(first?.finishReason) ?? blockReason,
      stopMessage: first?.finishMessage || promptFeedback?.blockReasonMessage || undefined,
    },
    counts: usageMetadata && countsOf(usageMetadata),
    isOpen: {
      ...(first || blockReason ? { first: continues(first) } : {}),
      ...(others.length > 0 ? { others: others.some(continues) } : {}),
    },
    holds: [...all.flatMap(partsOf).flatMap(holdingsOf), ...(isUnread ? ['something else' as const] : [])],
  }
}

function holdingsOf(part: Record<string, unknown>): Holding[] {
  const names = Object.keys(part).filter((name) => part[name] && !/^(text|thoughtSignature)$/.test(name))
  return names.map((name) => {
    const data = part[name]
    const mimeType = isObject(data) ? (data.mimeType ?? data.mime_type) : undefined
    return holdingOf(String(mimeType ?? name))
  })
}

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

/** A reason's name, if a reason is given. */
function reasonOf(reason: string | number = ''): string | undefined {
  const name = typeof reason === 'number' ? (numbered[reason - 1] ?? String(reason || '')) : reason
  return /^$|_UNSPECIFIED$/.test(name) ? undefined : name
}

/** The rest of a total, if both are known. */
function restOf(total: TokenCount | undefined, part: TokenCount | undefined): TokenCount | undefined {
  if (total === undefined || part === undefined) return undefined
  if (total === null || part === null) return null
  return total < part ? undefined : total - part
}

function countsOf(usage: z.infer<ReturnType<typeof NativeUsage>>): AnswerCounts {
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
