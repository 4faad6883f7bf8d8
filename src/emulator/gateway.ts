import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import { isObject } from '../wire/json/parse.ts'
import { takeStart } from '../wire/text-start.ts'
import { createRandomId, type EmulatedResponse, eventsResponse, jsonResponse } from './response.ts'
import { createSample, createSampleForTexts } from './sample.ts'

type EmulatedAnswer = ReturnType<typeof composeAnswer>

const greeting = "Hello from parley's emulator!"

const notice = 'No model read your prompt, and this text only shows the form of answers.'

export const countTokens = (text: string): number => Math.ceil(text.length / 4)

export const truncateQuote = (text: string): string => (text.length > 80 ? `${takeStart(text, 80)}…` : text)

const readTexts = ({ contents = [] }: GenerateRequest): string[] =>
  contents.map(({ parts = [] }) => parts.map(({ text = '' }) => text).join(' '))

/**
 * Composes the answer: `fixed` if given, JSON if the request has a schema, otherwise a text that quotes the
 * prompt.
 */
export function composeAnswer(request: GenerateRequest, model: string, fixed?: string) {
  const texts = readTexts(request)
  const promptText = texts.at(-1)?.trim() ?? ''
  const prompt = promptText.replace(/\s+/g, ' ')
  const quote = truncateQuote(prompt)
  const inputTokens = Math.max(1, countTokens(texts.join(' ')))
  const echo = quote === '' ? 'The body has no text in contents[].parts[].text.' : `You said: “${quote}”.`
  const prose = `${greeting} ${echo} ${notice}`
  const { responseJsonSchema: schema } = (request.generationConfig ?? {}) as { responseJsonSchema?: unknown }
  const whole = fixed ?? (isObject(schema) ? createSample(schema) : createSampleForTexts(texts)) ?? prose
  const limit = Math.max(request.generationConfig?.maxOutputTokens ?? Infinity, 0) * 4
  const limited = takeStart(whole, limit)
  const part = choosePart(limited, promptText, request)
  return {
    id: createRandomId('msg'),
    model,
    isCut: limited.length < whole.length,
    ...part,
    inputTokens,
    outputTokens: Math.max(1, countTokens(part.text)),
  }
}

/**
 * Returns the requested part of the answer. A prompt with words such as `in 3 parts` requests several parts.
 */
function choosePart(whole: string, prompt: string, request: GenerateRequest) {
  const [, number = '1'] = /\bin (\d{1,2}) parts\b/i.exec(prompt) ?? []
  const all = number === '1' ? [whole] : splitWords(whole)
  const count = Math.max(1, Math.min(Number(number), maxParts, all.length))
  const tokenOf = (index: number) => (index === 0 ? undefined : `part-${index + 1}-of-${count}`)
  const { continuationToken: given } = request as { continuationToken?: string }
  const index = Array.from({ length: count }, (_, at) => tokenOf(at)).indexOf(given)
  const startOf = (at: number) => Math.floor((all.length * at) / count)
  return {
    text: all.slice(startOf(index), startOf(index + 1)).join(''),
    hasWrongToken: index < 0,
    /** The answer has several parts, which only the native form supports. */
    isPart: count > 1,
    next: index + 1 < count ? tokenOf(index + 1) : undefined,
  }
}

const maxParts = 64

/** Creates the documented response of the chat endpoint (src/wire/README.md: gateway, 2.3). */
export function messageResponse(answer: EmulatedAnswer): EmulatedResponse {
  return jsonResponse({
    ...messageHead(answer),
    content: [{ type: 'text', text: answer.text }],
    stop_reason: getStopReason(answer),
    usage: usage(answer, answer.outputTokens),
  })
}

/** Streams the answer as message events (src/wire/README.md: public clients, 7). */
export function messageEventsResponse(answer: EmulatedAnswer): EmulatedResponse {
  const head = { ...messageHead(answer), content: [], stop_reason: null, usage: usage(answer, 1) }
  const events = [
    { type: 'message_start', message: head },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...splitWords(answer.text).map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: getStopReason(answer) },
      usage: { output_tokens: answer.outputTokens },
    },
    { type: 'message_stop' },
  ]
  return eventsResponse(events.map((event) => ({ event: event.type, data: JSON.stringify(event) })))
}

/** Creates a response in the native form, with `candidates` (src/wire/README.md: gateway, 2.2). */
export const nativeResponse = (answer: EmulatedAnswer): EmulatedResponse =>
  jsonResponse(createNativeChunk(answer, answer.text, true))

export function nativeStreamResponse(answer: EmulatedAnswer): EmulatedResponse {
  const pieces = splitWords(answer.text)
  const chunks = pieces.map((text, index) => createNativeChunk(answer, text, index === pieces.length - 1))
  return eventsResponse(chunks.map((chunk) => ({ event: '', data: JSON.stringify(chunk) })))
}

function createNativeChunk(answer: EmulatedAnswer, text: string, isLast: boolean) {
  const { inputTokens, outputTokens, isCut, next, model } = answer
  const reason = next === undefined ? (isCut ? 'MAX_TOKENS' : 'STOP') : 'CONTINUATION'
  const end = isLast ? { finishReason: reason, continuationToken: next } : {}
  return {
    candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...end }],
    usageMetadata: {
      promptTokenCount: inputTokens,
      candidatesTokenCount: outputTokens,
      totalTokenCount: inputTokens + outputTokens,
    },
    modelVersion: model,
  }
}

const splitWords = (text: string) => text.match(/\s*\S+\s*$|\s*\S+/g) ?? [text]

const messageHead = ({ id, model }: EmulatedAnswer) => ({ id, type: 'message', role: 'assistant', model })

const getStopReason = ({ isCut }: EmulatedAnswer) => (isCut ? 'max_tokens' : 'end_turn')

const usage = ({ inputTokens }: EmulatedAnswer, outputTokens: number) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
})

const picture =
  'iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAAA1BMVEUuoG6RpKaGAAAADElEQVR42mNgGNwAAACgAAGO+7G0AAAAAElFTkSuQmCC'

export function imageResponse(request: GenerateRequest, model: string): EmulatedResponse {
  const promptTokens = Math.max(1, countTokens(readTexts(request).join(' ')))
  const parts = [
    { text: 'A colour, chosen by an emulator that cannot read.' },
    { inlineData: { mimeType: 'image/png', data: picture } },
  ]
  return jsonResponse({
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: 1290,
      totalTokenCount: promptTokens + 1290,
      thoughtsTokenCount: 0,
    },
    modelVersion: model,
  })
}
