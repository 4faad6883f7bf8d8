import { isObject } from '../json/parse.ts'
import {
  computeTotalTokens,
  readTokenCount,
  readTokenCounts,
  sumTokenCounts,
  type TokenCount,
  type TokenCounts,
} from '../token-count.ts'

export interface AnswerTokenCounts extends TokenCounts {
  /** Number of reasoning tokens, which `outputTokens` includes. */
  reasoningTokens?: TokenCount
  /** If absent, the total is the sum of the other counts. Without input or output, the total is unknown. */
  totalTokens?: TokenCount
}

export interface AnswerSummary extends AnswerTokenCounts {
  id?: string
  model?: string
  stopReason?: string
  /** True if the body was one JSON value without a stop reason. The answer may then have been cut. */
  lacksStopReason?: true
  /** True if the service left the stream open but stayed silent, so parley assumed that the answer is complete. */
  isEndAssumed?: true
  /** Reason why the service blocked the prompt. A later candidate may replace it as `stopReason`. */
  blockReason?: string | undefined
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
  [/^unreadable$/, 'an unreadable part'],
  [/image|^inline/i, 'an image'],
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

/** Kinds of content that the text of an answer does not have. */
export const unprintedContent = [
  'another candidate',
  'a function call',
  'an image',
  'a file',
  'code',
] as const

const classifyContent = (name: string): NonTextContent =>
  otherContentNames.find(([pattern]) => pattern.test(name))?.[1] ?? 'something else'

type Fields = Record<string, unknown>

const toText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const toFields = (value: unknown): Fields => (isObject(value) ? value : {})

const toList = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

/** Converts a string to a text block, and any other value that is not a block to an unreadable part. */
const toBlocks = (value: unknown): Fields[] =>
  toList(value).map((each) => {
    if (typeof each === 'string') return { text: each }
    return isObject(each) && typeof (each.text ?? '') === 'string' ? each : { type: 'unreadable' }
  })

export const isMessageAnswer = (value: unknown): value is Record<string, unknown> =>
  isObject(value) &&
  Object.hasOwn(value, 'content') &&
  (typeof value.type !== 'string' || value.type === 'message')

/** Reads a whole answer in the Messages format (src/wire/README.md: gateway, 2.3). */
export const readMessageAnswer = (message: Fields): AnswerPiece =>
  createPiece(toBlocks(message.content), message)

export const isMessageEvent = (value: unknown): value is Record<string, unknown> & { type: string } =>
  isObject(value) && typeof value.type === 'string' && /^(message|content_block)_|^ping$/.test(value.type)

/** Reads an event of a stream in the Messages format (src/wire/README.md: public clients, 7). */
export function readMessageEvent(event: Fields): AnswerPiece {
  const { message: start, content_block: block, delta, usage } = event
  const message = toFields(start)
  // Before the answer begins, its number of output tokens is a placeholder.
  const startUsage = message.stop_reason
    ? toFields(message.usage)
    : { ...toFields(message.usage), output_tokens: undefined }
  return createPiece([isObject(start) ? start.content : start, block, delta].flatMap(toBlocks), {
    ...message,
    stop_reason: toText(toFields(delta).stop_reason) ?? message.stop_reason,
    usage: { ...startUsage, ...toFields(usage) },
  })
}

function createPiece(blocks: Fields[], { id, model, stop_reason, usage }: Fields): AnswerPiece {
  const others = blocks.filter((block) => !isText(block)).map(({ type }) => toText(type) ?? '')
  return {
    text: blocks.map((block) => (isText(block) ? block.text : '')).join(''),
    summary: {
      id: toText(id),
      model: toText(model),
      stopReason: toText(stop_reason) || undefined,
      ...readTokenCounts(usage),
    },
    otherContent: others.filter((type) => !/^$|signature|citation/i.test(type)).map(classifyContent),
  }
}

const isText = ({ type, text }: Fields): boolean =>
  typeof text === 'string' && !/think|reason|tool|function|signature|citation|json/i.test(toText(type) ?? '')

/** Returns the text of a `text_delta`. Faster than `readMessageEvent`, and most events are text deltas. */
export function readTextDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

export interface NativeAnswerPiece extends AnswerPiece {
  /**
   * `first`: the candidate that parley prints has not ended. `others`: another candidate has not ended. A
   * field is absent if the chunk has no such candidate.
   */
  isUnfinished: { first?: boolean; others?: boolean }
  /** Token counts of the whole answer up to this chunk, not of this chunk alone. */
  counts: AnswerTokenCounts | undefined
}

export const isNativeAnswer = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && nativeNames.some((name) => Object.hasOwn(value, name))

const nativeNames = ['candidates', 'promptFeedback', 'usageMetadata']

/** Reads a whole body in the native format (src/wire/README.md: gateway, 2.2), or one chunk of a stream. */
export function readNativeAnswer({ promptFeedback, usageMetadata, ...answer }: Fields): NativeAnswerPiece {
  const all = toBlocks(answer.candidates)
  const first = all.find(({ index }) => typeof index !== 'number' || index === 0)
  const isUnread = first !== undefined && !hasKnownShape(first)
  const feedback = toFields(promptFeedback)
  // `readReason` replaces a number by the name of a finish reason. The numbers of block reasons have other
  // meanings, so `readReason` gets a block reason as text, which it does not replace.
  const { blockReason: given } = feedback
  const blockReason = readReason(typeof given === 'number' ? String(given || '') : given)
  const others = all.filter((candidate) => candidate !== first)
  const continues = (candidate?: Fields) => !(readReason(candidate?.finishReason) ?? blockReason)
  return {
    text: first ? getText(first) : '',
    summary: {
      id: toText(answer.responseId),
      model: toText(answer.modelVersion),
      stopReason: readReason(first?.finishReason) ?? blockReason,
      blockReason: first ? undefined : blockReason,
      stopMessage: toText(first?.finishMessage) || toText(feedback.blockReasonMessage) || undefined,
      continuationToken: toText(first?.continuationToken) || undefined,
    },
    counts: isObject(usageMetadata) ? readCounts(usageMetadata) : undefined,
    isUnfinished: {
      ...(first || blockReason ? { first: continues(first) } : {}),
      ...(others.length > 0 ? { others: others.some(continues) } : {}),
    },
    otherContent: [
      ...all.flatMap(getParts).flatMap(listOtherContent),
      ...(others.some((candidate) => getText(candidate) !== '') ? ['another candidate' as const] : []),
      ...(isUnread ? ['something else' as const] : []),
    ],
  }
}

function listOtherContent(part: Fields): NonTextContent[] {
  if (part.type === 'unreadable') return ['an unreadable part']
  const names = Object.keys(part).filter((name) => part[name] && !/^(text|thoughtSignature)$/.test(name))
  return names.map((name) => {
    const data = part[name]
    const mimeType = isObject(data) ? (data.mimeType ?? data.mime_type) : undefined
    return classifyContent(typeof mimeType === 'string' ? mimeType : name)
  })
}

const getParts = (candidate: Fields): Fields[] => {
  const { content, text, parts, type } = candidate
  const isUnreadable = type === 'unreadable' || (content === undefined && (text ?? parts) !== undefined)
  return isUnreadable ? [{ type: 'unreadable' }] : toBlocks(isObject(content) ? content.parts : content)
}

const getText = (candidate: Fields): string =>
  getParts(candidate)
    .map(({ thought, text }) => (thought === true ? '' : (toText(text) ?? '')))
    .join('')

const hasKnownShape = ({ content }: Fields): boolean =>
  Object.keys(toFields(content)).every((name) => name === 'role' || name === 'parts')

/** Names of the finish reasons 1 to 9. Some services send the number instead of the name. */
const finishReasons =
  'STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL'.split(
    ' ',
  )

function readReason(reason: unknown): string | undefined {
  const name =
    typeof reason === 'number' ? (finishReasons[reason - 1] ?? String(reason || '')) : (toText(reason) ?? '')
  return /^$|_UNSPECIFIED$/.test(name) ? undefined : name
}

function subtractTokens(total: TokenCount | undefined, part: TokenCount | undefined): TokenCount | undefined {
  if (total === undefined || part === undefined) return undefined
  if (total === null || part === null) return null
  return total < part ? undefined : total - part
}

function readCounts(usage: Record<string, unknown>): AnswerTokenCounts {
  const read = (name: string) => readTokenCount(usage[name])
  // `promptTokenCount` excludes the results of the service's own tools, which are input, too.
  const inputTokens = sumTokenCounts(read('promptTokenCount'), read('toolUsePromptTokenCount'))
  const reasoningTokens = read('thoughtsTokenCount')
  const total = read('totalTokenCount')
  const generatedTokens = sumTokenCounts(read('candidatesTokenCount'), reasoningTokens)
  const outputTokens = generatedTokens === undefined ? subtractTokens(total, inputTokens) : generatedTokens
  // `promptTokenCount` includes the cached tokens, so they are not added again.
  const sum = computeTotalTokens({ inputTokens, outputTokens })
  return {
    inputTokens,
    outputTokens,
    cacheReadInputTokens: read('cachedContentTokenCount'),
    reasoningTokens,
    // Some services send a total of 0 next to larger parts, so parley ignores a total of 0.
    totalTokens: total || (sum === undefined ? total : sum),
  }
}
