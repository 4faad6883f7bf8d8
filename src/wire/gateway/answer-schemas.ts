import * as z from '../zod.ts'

/** A field that is only shown: a value of another type counts as absent. */
const shown = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const text = z.lazily(() => z.nullish(z.string()))
const shownText = z.lazily(() => shown(z.string()))
const shownNumber = z.lazily(() => shown(z.number()))

/** Makes a plain string a block with that text. */
const toBlock = (value: unknown): unknown => (typeof value === 'string' ? { text: value } : value)

/** The same for a list; one block alone need not be in a list. */
function toBlocks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBlock)
  const block = toBlock(value)
  return typeof block === 'object' && block !== null ? [block] : block
}

const normalized = <T extends z.ZodMiniType>(normalize: (value: unknown) => unknown, schema: T) =>
  z.pipe(z.transform(normalize), schema)

const Block = z.lazily(() => z.looseObject({ type: shownText(), text: text() }))
const Blocks = z.lazily(() => z.array(Block()))

const MessageUsage = z.lazily(() =>
  shown(
    z.looseObject({
      input_tokens: shownNumber(),
      output_tokens: shownNumber(),
      cache_read_input_tokens: shownNumber(),
      cache_creation_input_tokens: shownNumber(),
    }),
  ),
)

/** The chat endpoint's success body (gateway, 2.3). */
export const Message = z.lazily(() =>
  z.looseObject({
    id: shownText(),
    content: normalized(toBlocks, Blocks()),
    model: shownText(),
    stop_reason: shownText(),
    usage: MessageUsage(),
  }),
)

/** One of a message stream's own events (public clients, 7); only what is printed is read. */
export const MessageEvent = z.lazily(() =>
  z.looseObject({
    message: z.nullish(
      z.looseObject({
        id: shownText(),
        model: shownText(),
        content: z.nullish(normalized(toBlocks, Blocks())),
        stop_reason: shownText(),
        usage: MessageUsage(),
      }),
    ),
    content_block: z.nullish(normalized(toBlock, Block())),
    delta: z.nullish(normalized(toBlock, z.extend(Block(), { stop_reason: shownText() }))),
    usage: MessageUsage(),
  }),
)

/** A name, or its number in the family's binary form. */
const shownName = z.lazily(() => shown(z.union([z.string(), z.number()])))

const Parts = z.lazily(() =>
  normalized(toBlocks, z.array(z.looseObject({ text: text(), thought: shown(z.boolean()) }))),
)

const Candidate = z.lazily(() =>
  z.looseObject({
    index: shownNumber(),
    content: z.nullish(normalized(toContent, z.looseObject({ parts: z.nullish(Parts()) }))),
    finishReason: shownName(),
    finishMessage: shownText(),
  }),
)

const toContent = (value: unknown): unknown => (typeof value === 'string' ? { parts: value } : value)

/** The family's native answer: a whole body (gateway, 2.2) or one chunk of a stream. */
export const NativeAnswer = z.lazily(() =>
  z.looseObject({
    candidates: z.nullish(z.array(Candidate())),
    promptFeedback: shown(z.looseObject({ blockReason: shownName(), blockReasonMessage: shownText() })),
    responseId: shownText(),
    modelVersion: shownText(),
    usageMetadata: shown(
      z.looseObject({
        promptTokenCount: shownNumber(),
        candidatesTokenCount: shownNumber(),
        thoughtsTokenCount: shownNumber(),
        totalTokenCount: shownNumber(),
        cachedContentTokenCount: shownNumber(),
      }),
    ),
  }),
)
