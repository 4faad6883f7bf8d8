import * as z from './zod.ts'

/** A field that is only shown, never relied on: a value of another type counts as absent. */
const shown = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const text = z.lazily(() => z.nullish(z.string()))
const shownText = z.lazily(() => shown(z.string()))
const shownNumber = z.lazily(() => shown(z.number()))

const MessageUsage = z.lazily(() =>
  shown(
    z.looseObject({
      input_tokens: shownNumber(),
      output_tokens: shownNumber(),
      cache_read_input_tokens: shownNumber(),
    }),
  ),
)

/** The chat endpoint's success body (gateway, 2.3). */
export const Message = z.lazily(() =>
  z.looseObject({
    content: z.array(z.looseObject({ type: z.optional(z.string()), text: text() })),
    model: shownText(),
    stop_reason: shownText(),
    usage: MessageUsage(),
  }),
)

/** One of a message stream's own events (`spec/beyond.md`); only what is printed is read. */
export const MessageEvent = z.lazily(() =>
  z.looseObject({
    message: z.nullish(z.looseObject({ model: shownText(), usage: MessageUsage() })),
    delta: z.nullish(z.looseObject({ type: shownText(), text: text(), stop_reason: shownText() })),
    usage: MessageUsage(),
  }),
)

const Candidate = z.lazily(() =>
  z.looseObject({
    index: shownNumber(),
    content: z.nullish(
      z.looseObject({
        parts: z.nullish(z.array(z.looseObject({ text: text(), thought: shown(z.boolean()) }))),
      }),
    ),
    finishReason: shownText(),
  }),
)

/** The family's native answer: a whole body (gateway, 2.2) or one chunk of a stream. */
export const NativeAnswer = z.lazily(() =>
  z.looseObject({
    candidates: z.nullish(z.array(Candidate())),
    promptFeedback: shown(z.looseObject({ blockReason: shownText() })),
    modelVersion: shownText(),
    usageMetadata: shown(
      z.looseObject({
        promptTokenCount: shownNumber(),
        candidatesTokenCount: shownNumber(),
        thoughtsTokenCount: shownNumber(),
        cachedContentTokenCount: shownNumber(),
      }),
    ),
  }),
)
