import type { BatchLine, BatchLineCall } from '../batch/input.ts'
import type { ParsedBatchLine } from '../batch/line-form.ts'
import { listAnswerWarnings } from '../content/answer-checks.ts'
import { buildRequestBody, type MessagePart } from '../content/body.ts'
import type { ArgumentInputs } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { addAnswerUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { type CliError, toFailure } from '../errors.ts'
import { createServiceCaller } from '../http/call.ts'
import { encodePathSegment } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { endpoints } from '../wire/endpoints.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import { type BodyFlags, createBodyParts } from './body-flags.ts'
import type { AnswerPartReader, ContinuedAnswer, RequestAnswerPart } from './continued-answer.ts'

export type BatchLineRequest = Pick<BatchLineCall, 'model' | 'body'>

interface SharedLineParts {
  endpoint: typeof endpoints.chat | typeof endpoints.image
  options: BodyFlags
  inputs: ArgumentInputs
  /** Called for lines that name no model. Throws a usage error if no model is set. */
  model(): string
  schema?: AnswerSchema | undefined
}

/**
 * Placeholder for the prompt in the sample body. No flag or text file can contain a NUL, so the placeholder
 * occurs nowhere else in the body.
 */
const placeholder = 'the prompt\0'

export type BatchLineSender = Awaited<ReturnType<typeof createBatchLineSender>>

interface LineReading<T> {
  model: string
  line: BatchLine
  answer: ContinuedAnswer
  reader: AnswerPartReader<T>
  addReceived(failure: CliError): CliError | undefined
  requireNext(): void
  /** True if the result has only the text of the answer. */
  isTextOnly?: boolean
}

export async function createBatchLineSender(
  outer: Context,
  settings: ResolvedSettings,
  { endpoint, options, inputs, model, schema }: SharedLineParts,
) {
  const { prompt, files } = inputs
  const bodyParts = createBodyParts(options, inputs, schema)
  const before: MessagePart[] = prompt ? [{ text: prompt }] : []
  const after = [...files, ...(schema?.parts ?? [])]
  // Lines with a prompt have the same body except for the prompt. Inserting each prompt into one sample is
  // several times faster than building each body.
  const sample = await buildRequestBody({ ...bodyParts, turn: [...before, { text: placeholder }, ...after] })
  const pieces = Buffer.from(sample).toString().split(JSON.stringify(placeholder))
  const insertPrompt = (prompt: string) => Buffer.from(pieces.join(JSON.stringify(prompt)))
  const buildGiven = (text: string) =>
    buildRequestBody({ ...bodyParts, given: { text, name: 'its body' }, turn: [...before, ...after] })
  // A batch prints the responses in its results, so `raw` is off for each request.
  const context = { ...outer, flags: { ...outer.flags, raw: false } }
  const caller = createServiceCaller(context, settings, true)
  const { family, retries } = settings.values
  const { retryUnknown = false } = outer.flags
  const createParts = ({ model, body }: BatchLineRequest) => ({ params: { family, model }, body })
  return {
    context,
    retry: { repeat: endpoint.repeat, retries, retryUnknown },
    preview: async (request: BatchLineRequest) => void (await caller.preview(endpoint, createParts(request))),
    async build(line: ParsedBatchLine): Promise<BatchLineRequest> {
      if (line.model !== undefined) encodePathSegment('model', line.model)
      return {
        model: line.model ?? model(),
        body: 'prompt' in line ? insertPrompt(line.prompt) : await buildGiven(line.body),
      }
    },
    countAnswer: ({ spent }: BatchLine, summary: AnswerSummary) =>
      addAnswerUsage(spent, context.reportData, summary),
    async receive<T>({ model, line, answer, reader, addReceived, requireNext, isTextOnly }: LineReading<T>) {
      const onAttempt = () => void line.spent.attempts++
      const send: RequestAnswerPart = (body, read) =>
        caller.call(endpoint, { ...createParts({ model, body }), onAttempt }, read)
      try {
        const value = await answer.receive(send, reader, { requireNext, isRepeated: true })
        const { end } = answer
        const { model, stopReason } = end.summary
        return {
          value,
          model,
          stopReason,
          warning: listAnswerWarnings(end, isTextOnly).join('; ') || undefined,
        }
      } catch (error) {
        throw answer.isWhole ? error : (addReceived(toFailure(error)) ?? error)
      }
    },
  }
}
