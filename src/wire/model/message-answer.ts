import { isObject } from '../json/parse.ts'
import type * as z from '../zod.ts'
import { type AnswerPiece, mayHoldText, read } from './answer-piece.ts'
import { Message, MessageEvent } from './generate.ts'

type Block = z.infer<ReturnType<typeof Message>>['content'][number]
type Usage = z.infer<ReturnType<typeof Message>>['usage']

export const isMessage = (value: unknown): boolean =>
  isObject(value) &&
  Object.hasOwn(value, 'content') &&
  (typeof value.type !== 'string' || value.type === 'message')

/** Reads a whole message (gateway, 2.3). Throws a `CliError` where it has another shape. */
export function readMessage(value: unknown): AnswerPiece {
  const { content, model, stop_reason: stopReason, usage } = read(Message(), value)
  return {
    text: content.map(textOf).join(''),
    facts: { model, stopReason, ...countsOf(usage) },
    isStrange: content.some(isStrange),
  }
}

export const isMessageEvent = (value: unknown): value is { type: string } =>
  isObject(value) && typeof value.type === 'string' && /^(message|content_block)_|^ping$/.test(value.type)

/** Reads one event of a message stream (public clients, 7). Throws a `CliError` where it has another shape. */
export function readMessageEvent(value: { type: string }): AnswerPiece {
  const { type } = value
  if (type === 'ping' || type === 'message_stop') return { text: '', facts: {}, isStrange: false }
  const { message, content_block: block, delta, usage } = read(MessageEvent(), value)
  const blocks = [...(message?.content ?? []), ...(block ? [block] : []), ...(delta ? [delta] : [])]
  return {
    text: blocks.map(textOf).join(''),
    facts: {
      model: message?.model,
      stopReason: delta?.stop_reason ?? message?.stop_reason,
      ...countsOf({ ...message?.usage, ...usage }),
    },
    isStrange: blocks.some(isStrange) || (type === 'content_block_delta' && isUnread(delta)),
  }
}

/** The text of the event that nearly all of a stream consists of, which is worth no schema. */
export function textDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

/** Blocks and deltas that do not belong to what the answer says. */
const isAside = ({ type = '' }: Block): boolean => /think|reason|tool|signature|citation|json/i.test(type)

const textOf = (block: Block): string => (isAside(block) ? '' : (block.text ?? ''))

const isStrange = (block: Block): boolean =>
  !isAside(block) && typeof block.text !== 'string' && mayHoldText(block)

/** A delta is there for what it brings. */
const isUnread = (delta: Block | null | undefined): boolean =>
  !delta || (!isAside(delta) && delta.text === undefined)

const countsOf = (usage: Usage): AnswerPiece['facts'] => ({
  inputTokens: usage?.input_tokens,
  outputTokens: usage?.output_tokens,
  cachedTokens: usage?.cache_read_input_tokens,
})
