import { isObject } from '../json/parse.ts'
import { readCacheCreation } from '../token-count.ts'
import * as z from '../zod.ts'
import {
  type AnswerPiece,
  type Holding,
  normalized,
  optionalText,
  readAs,
  shown,
  shownText,
  toBlock,
  toBlocks,
  tokenCount,
} from './answer-fields.ts'

const Block = z.lazily(() => z.looseObject({ type: shownText(), text: optionalText() }))
const Blocks = z.lazily(() => z.array(Block()))
type Block = z.infer<ReturnType<typeof Block>>

const Usage = z.lazily(() =>
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
    content: normalized(toBlocks, Blocks()),
    model: shownText(),
    stop_reason: shownText(),
    usage: Usage(),
  }),
)

/** One of a message stream's own events (public clients, 7); only what is printed is read. */
const MessageEvent = z.lazily(() =>
  z.looseObject({
    message: z.nullish(z.extend(Message(), { content: z.nullish(normalized(toBlocks, Blocks())) })),
    content_block: z.nullish(normalized(toBlock, Block())),
    delta: z.nullish(normalized(toBlock, z.extend(Block(), { stop_reason: shownText() }))),
    usage: Usage(),
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
  const { type } = value
  if (type === 'ping' || type === 'message_stop') return pieceOf([], {})
  const { message, content_block: block, delta, usage } = readAs(MessageEvent(), value)
  const blocks = [...(message?.content ?? []), ...(block ? [block] : []), ...(delta ? [delta] : [])]
  return pieceOf(blocks, {
    ...message,
    stop_reason: delta?.stop_reason ?? message?.stop_reason,
    usage: { ...message?.usage, ...usage },
  })
}

interface MessageFacts {
  id?: string
  model?: string
  stop_reason?: string
  usage?: z.infer<ReturnType<typeof Usage>>
}

/** What a message's blocks are, and what it says of itself. */
function pieceOf(blocks: Block[], { id, model, stop_reason: stopReason, usage }: MessageFacts): AnswerPiece {
  return {
    text: blocks.map(textOf).join(''),
    summary: {
      id,
      model,
      stopReason,
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      cacheReadInputTokens: usage?.cache_read_input_tokens,
      cacheCreationInputTokens: usage && readCacheCreation(usage),
    },
    holds: blocks.flatMap(holdingsOf),
  }
}

function holdingsOf({ type = '', text }: Block): Holding[] {
  if (/think|reason/i.test(type)) return ['thoughts']
  if (/tool|function|json/i.test(type)) return ['a function call']
  if (typeof text === 'string' || /^$|signature|citation/i.test(type)) return []
  return [/image/i.test(type) ? 'a picture' : 'something else']
}

/** The text of the most frequent event. It is read without a schema, which would be slow. */
export function textDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

/** A block's part of the answer's text. */
const textOf = ({ type = '', text }: Block): string =>
  /think|reason|tool|signature|citation|json/i.test(type) ? '' : (text ?? '')
