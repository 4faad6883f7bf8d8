import { CliError } from '../errors.ts'
import { Message, MessageEvent, NativeAnswer } from './generate.ts'
import { formatPath } from './json.ts'
import { failureInBody, failureInstead, isErrorEnvelope, readProblem } from './problem.ts'
import type * as z from './zod.ts'

/** What is known of an answer beside its text; a stream fills it in as it goes. */
export interface AnswerSummary {
  model?: string
  stopReason?: string
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
}

/** Reads an answer's JSON values, one by one, into text. */
export interface AnswerReader {
  readonly summary: AnswerSummary
  /** The service said that the answer is whole. */
  readonly whole: boolean
  /** The service said that nothing follows. */
  readonly ended: boolean
  /** Something of a known shape came. */
  readonly isKnown: boolean
  /** Reads a whole body, in the documented shape or in the family's native one; returns its text. */
  addBody(value: unknown): string
  /** Reads one event of a message stream or one native chunk; returns the text that it adds. */
  addEvent(value: unknown, event?: string): string
  /** Takes note that the stream's own terminator came. */
  end(): void
}

export function createAnswerReader(): AnswerReader {
  const summary: AnswerSummary = {}
  let whole = false
  let ended = false
  let isKnown = false

  function note(fields: { [K in keyof AnswerSummary]: AnswerSummary[K] | undefined }): void {
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined) Object.assign(summary, { [key]: value })
    }
  }

  function noteUsage(usage: z.infer<ReturnType<typeof Message>>['usage']): void {
    note({
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      cachedTokens: usage?.cache_read_input_tokens,
    })
  }

  function addMessage(value: unknown): string {
    const message = read(Message(), value)
    note({ model: message.model, stopReason: message.stop_reason })
    noteUsage(message.usage)
    return message.content.map((block) => (block.type === 'text' && block.text) || '').join('')
  }

  function addNative(value: unknown): string {
    const { candidates, promptFeedback, usageMetadata: usage, modelVersion } = read(NativeAnswer(), value)
    const first = candidates?.find((candidate) => (candidate.index ?? 0) === 0)
    const thoughts = usage?.thoughtsTokenCount ?? 0
    note({
      model: modelVersion,
      stopReason: first?.finishReason || promptFeedback?.blockReason,
      inputTokens: usage?.promptTokenCount,
      outputTokens:
        usage?.candidatesTokenCount === undefined ? undefined : usage.candidatesTokenCount + thoughts,
      cachedTokens: usage?.cachedContentTokenCount,
    })
    if (first?.finishReason || promptFeedback?.blockReason) whole = true
    return (first?.content?.parts ?? []).map((part) => (part.thought ? '' : (part.text ?? ''))).join('')
  }

  function addMessageEvent(value: { type: string }): string {
    const { type } = value
    const isMessage = /^(message|content_block)_/.test(type)
    if (isMessage || type === 'ping') isKnown = true
    if (!isMessage) return ''
    const { message, delta, usage } = read(MessageEvent(), value)
    note({ model: message?.model, stopReason: delta?.stop_reason })
    noteUsage(message?.usage)
    noteUsage(usage)
    if (type === 'message_stop') {
      whole = true
      ended = true
    }
    return type === 'content_block_delta' && delta?.type === 'text_delta' ? (delta.text ?? '') : ''
  }

  return {
    summary,
    get whole() {
      return whole
    },
    get ended() {
      return ended
    },
    get isKnown() {
      return isKnown
    },
    addBody(value) {
      if (isErrorEnvelope(value)) throw failureInBody(value)
      const text = isNative(value) ? addNative(value) : addMessage(value)
      whole = true
      ended = true
      return text
    },
    addEvent(value, event = '') {
      const delta = textDelta(value)
      if (delta !== undefined) {
        isKnown = true
        return delta
      }
      if (event === 'error' || isErrorEnvelope(value)) throw failureInStream(value)
      if (isNative(value)) {
        isKnown = true
        return addNative(value)
      }
      const named =
        isObject(value) && typeof value.type !== 'string' && event ? { ...value, type: event } : value
      return hasType(named) ? addMessageEvent(named) : addNative(named)
    },
    end() {
      whole = true
      ended = true
    },
  }
}

/** The text of the event that nearly all of a stream consists of, which is worth no schema. */
function textDelta(value: unknown): string | undefined {
  const { type, delta } = (value ?? {}) as { type?: unknown; delta?: { type?: unknown; text?: unknown } }
  if (type !== 'content_block_delta' || delta?.type !== 'text_delta') return undefined
  return typeof delta.text === 'string' ? delta.text : undefined
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isNative = (value: unknown): boolean =>
  isObject(value) && ('candidates' in value || 'promptFeedback' in value)

const hasType = (value: unknown): value is { type: string } =>
  isObject(value) && typeof value.type === 'string'

function read<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = formatPath(issue?.path ?? []) || 'the body'
  throw failureInstead(value, `the answer has another shape than documented: ${path}: ${issue?.message}`)
}

function failureInStream(value: unknown): CliError {
  const { message } = readProblem(value)
  return new CliError('response', 'the stream ended with an error', {
    sent: 'yes',
    body: value,
    ...(message === undefined ? {} : { serviceMessage: message }),
  })
}
