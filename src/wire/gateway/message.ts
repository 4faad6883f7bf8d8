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
    message: z.nullish(
      z.looseObject({
        id: shownText(),
        model: shownText(),
        content: z.nullish(normalized(toBlocks, Blocks())),
        stop_reason: shownText(),
        usage: Usage(),
      }),
    ),
    content_block: z.nullish(normalized(toBlock, Block())),
    delta: z.nullish(normalized(toBlock, z.extend(Block(), { stop_reason: shownText() }))),
    usage: Usage(),
  }),
)

type Usage = z.infer<ReturnType<typeof Usage>>

export const isMessage = (value: unknown): boolean =>
  isObject(value) &&
  Object.hasOwn(value, 'content') &&
  (typeof value.type !== 'string' || value.type === 'message')

/** Reads a whole message (gateway, 2.3). Throws a `CliError` if it has another shape. */
export function readMessage(value: unknown): AnswerPiece {
  const { id, content, model, stop_reason: stopReason, usage } = readAs(Message(), value)
  return {
    text: content.map(textOf).join(''),
    summary: { id, model, stopReason, ...countsOf(usage) },
    holds: content.flatMap(holdingsOf),
  }
}

export const isMessageEvent = (value: unknown): value is { type: string } =>
  isObject(value) && typeof value.type === 'string' && /^(message|content_block)_|^ping$/.test(value.type)

/** Reads one event of a message stream (public clients, 7). Throws a `CliError` if it has another shape. */
export function readMessageEvent(value: { type: string }): AnswerPiece {
  const { type } = value
  if (type === 'ping' || type === 'message_stop') return { text: '', summary: {}, holds: [] }
  const { message, content_block: block, delta, usage } = readAs(MessageEvent(), value)
  const blocks = [...(message?.content ?? []), ...(block ? [block] : []), ...(delta ? [delta] : [])]
  return {
    text: blocks.map(textOf).join(''),
    summary: {
      id: message?.id,
      model: message?.model,
      stopReason: delta?.stop_reason ?? message?.stop_reason,
      ...countsOf({ ...message?.usage, ...usage }),
    },
    // A later piece of a block has a type of its own; without one it is not a block.
    holds: blocks.filter((block) => block.type !== undefined).flatMap(holdingsOf),
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

/** Whether a block or delta is not part of the answer's text. */
const isAside = ({ type = '' }: Block): boolean => /think|reason|tool|signature|citation|json/i.test(type)

const textOf = (block: Block): string => (isAside(block) ? '' : (block.text ?? ''))

const countsOf = (usage: Usage): AnswerPiece['summary'] => ({
  inputTokens: usage?.input_tokens,
  outputTokens: usage?.output_tokens,
  cachedTokens: usage?.cache_read_input_tokens,
  cacheCreationTokens: usage && readCacheCreation(usage),
})
