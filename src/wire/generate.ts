import * as z from './zod.ts'

/** A field that is only shown, never relied on: a value of another type counts as absent. */
const shown = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const MessageUsage = z.looseObject({
  input_tokens: shown(z.number()),
  output_tokens: shown(z.number()),
  cache_read_input_tokens: shown(z.number()),
})

/** The chat endpoint's success body (gateway, 2.3). */
export const Message = z.looseObject({
  content: z.array(z.looseObject({ type: z.optional(z.string()), text: z.nullish(z.string()) })),
  model: shown(z.string()),
  stop_reason: shown(z.string()),
  usage: shown(MessageUsage),
})

/** One of a message stream's own events (`spec/beyond.md`); only what is printed is read. */
export const MessageEvent = z.looseObject({
  message: z.nullish(z.looseObject({ model: shown(z.string()), usage: shown(MessageUsage) })),
  delta: z.nullish(
    z.looseObject({
      type: shown(z.string()),
      text: z.nullish(z.string()),
      stop_reason: shown(z.string()),
    }),
  ),
  usage: shown(MessageUsage),
})

const Candidate = z.looseObject({
  index: shown(z.number()),
  content: z.nullish(
    z.looseObject({
      parts: z.nullish(z.array(z.looseObject({ text: z.nullish(z.string()), thought: shown(z.boolean()) }))),
    }),
  ),
  finishReason: shown(z.string()),
})

/** The family's native answer: a whole body (gateway, 2.2) or one chunk of a stream. */
export const NativeAnswer = z.looseObject({
  candidates: z.nullish(z.array(Candidate)),
  promptFeedback: shown(z.looseObject({ blockReason: shown(z.string()) })),
  modelVersion: shown(z.string()),
  usageMetadata: shown(
    z.looseObject({
      promptTokenCount: shown(z.number()),
      candidatesTokenCount: shown(z.number()),
      thoughtsTokenCount: shown(z.number()),
      cachedContentTokenCount: shown(z.number()),
    }),
  ),
})
