import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import { isObject } from '../wire/json/parse.ts'
import { getTextStart } from '../wire/text-start.ts'
import { createJsonSample, createJsonSampleForPrompt } from './json-sample.ts'
import { createRandomId, type EmulatedResponse, toEventStreamResponse, toJsonResponse } from './response.ts'

type EmulatedAnswer = ReturnType<typeof composeEmulatedAnswer>

const greeting = "Hello from parley's emulator!"

const notice = 'No model read your prompt, and this text only shows the form of answers.'

export const estimateTokens = (text: string): number => Math.ceil(text.length / 4)

export const shortenQuote = (text: string): string => (text.length > 80 ? `${getTextStart(text, 80)}…` : text)

const readTexts = ({ contents = [] }: GenerateRequest): string[] =>
  contents.map(({ parts = [] }) => parts.map(({ text = '' }) => text).join(' '))

export function composeEmulatedAnswer(request: GenerateRequest, model: string, fixed?: string) {
  const texts = readTexts(request)
  const promptText = texts.at(-1)?.trim() ?? ''
  const prompt = promptText.replace(/\s+/g, ' ')
  const quote = shortenQuote(prompt)
  const inputTokens = Math.max(1, estimateTokens(texts.join(' ')))
  const echo = quote === '' ? 'The body has no text in contents[].parts[].text.' : `You said: “${quote}”.`
  const prose = `${greeting} ${echo} ${notice}`
  const { responseJsonSchema: schema } = (request.generationConfig ?? {}) as { responseJsonSchema?: unknown }
  const whole =
    fixed ?? (isObject(schema) ? createJsonSample(schema) : createJsonSampleForPrompt(texts)) ?? prose
  const limit = Math.max(request.generationConfig?.maxOutputTokens ?? Infinity, 0) * 4
  const limited = getTextStart(whole, limit)
  const part = choosePart(limited, promptText, request)
  return {
    id: createRandomId('msg'),
    model,
    isCut: limited.length < whole.length,
    ...part,
    inputTokens,
    outputTokens: Math.max(1, estimateTokens(part.text)),
  }
}

/**
 * If the prompt has words such as `in 3 parts`, the answer is split into up to that number of parts. To
 * request a further part, the client sends the token that came with the part before it.
 */
function choosePart(whole: string, prompt: string, request: GenerateRequest) {
  const [, number = '1'] = /\bin (\d{1,2}) parts\b/i.exec(prompt) ?? []
  const all = number === '1' ? [whole] : splitWords(whole)
  const count = Math.max(1, Math.min(Number(number), maxParts, all.length))
  const tokenOf = (index: number) => (index === 0 ? undefined : `part-${index + 1}-of-${count}`)
  const { continuationToken: given } = request as { continuationToken?: string }
  const index = Math.max(0, Array.from({ length: count }, (_, at) => tokenOf(at)).indexOf(given))
  const startOf = (at: number) => Math.floor((all.length * at) / count)
  return {
    text: all.slice(startOf(index), startOf(index + 1)).join(''),
    /** Only the native form of an answer supports parts. */
    isPart: count > 1,
    next: index + 1 < count ? tokenOf(index + 1) : undefined,
  }
}

const maxParts = 64

/** Creates the documented response of the chat endpoint (src/wire/README.md: gateway, 2.3). */
export function toMessageResponse(answer: EmulatedAnswer): EmulatedResponse {
  return toJsonResponse({
    ...messageHead(answer),
    content: [{ type: 'text', text: answer.text }],
    stop_reason: getStopReason(answer),
    usage: usage(answer, answer.outputTokens),
  })
}

/** Streams the answer as message events (src/wire/README.md: public clients, 7). */
export function toMessageStreamResponse(answer: EmulatedAnswer): EmulatedResponse {
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
  return toEventStreamResponse(events.map((event) => ({ event: event.type, data: JSON.stringify(event) })))
}

/**
 * Creates a response in the native form, with `candidates` (src/wire/README.md: gateway, 2.2). With `isStream`,
 * streams the words of the answer.
 */
export function toNativeResponse(answer: EmulatedAnswer, isStream: boolean): EmulatedResponse {
  const reason = answer.next === undefined ? (answer.isCut ? 'MAX_TOKENS' : 'STOP') : 'CONTINUATION'
  const end = { finishReason: reason, continuationToken: answer.next }
  if (!isStream) return toJsonResponse(createNativeChunk(answer, [{ text: answer.text }], end))
  const words = splitWords(answer.text)
  const chunks = words.map((text, index) =>
    createNativeChunk(answer, [{ text }], index === words.length - 1 ? end : {}),
  )
  return toEventStreamResponse(chunks.map((chunk) => ({ event: '', data: JSON.stringify(chunk) })))
}

const createNativeChunk = (
  { inputTokens, outputTokens, model }: Pick<EmulatedAnswer, 'inputTokens' | 'outputTokens' | 'model'>,
  parts: object[],
  end: object,
) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...end }],
  usageMetadata: {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: inputTokens + outputTokens,
    thoughtsTokenCount: 0,
  },
  modelVersion: model,
})

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

export function createImageResponse(request: GenerateRequest, model: string): EmulatedResponse {
  const inputTokens = Math.max(1, estimateTokens(readTexts(request).join(' ')))
  const parts = [
    { text: 'The emulator ignores the prompt and always sends this image.' },
    { inlineData: { mimeType: 'image/png', data: picture } },
  ]
  const answer = { inputTokens, outputTokens: 1290, model }
  return toJsonResponse(createNativeChunk(answer, parts, { finishReason: 'STOP' }))
}
