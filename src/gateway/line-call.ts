import {
  type BatchLine,
  type BatchLineAnswer,
  type BatchLineCall,
  recordAnswerUsage,
} from '../batch/input.ts'
import type { ParsedBatchLine } from '../batch/parsed-line.ts'
import { buildRequestBody } from '../content/body.ts'
import { type PromptArguments, readPromptTexts } from '../content/prompt.ts'
import type { AnswerRequest, AnswerSchema } from '../content/schema/schema.ts'
import { addAnswerSummaryToReport, readTokenUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import type { DeliveryState } from '../delivery-state.ts'
import { CliError, toFailure } from '../errors.ts'
import { createServiceCaller } from '../http/call.ts'
import { encodePathSegment } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { endpoints } from '../wire/endpoints.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import { type BodyFlags, createBodyParts } from './body-flags.ts'
import { type AnswerPartReader, ContinuedAnswer, type SendPartRequest } from './continued-answer.ts'

interface LineContent {
  content: BatchLineAnswer['content']
  warnings: string[]
}

export interface BatchAnswerReader extends AnswerPartReader<LineContent> {
  /** Returns the failure with the received part of this answer, or `undefined` if nothing was received. */
  addReceivedPart(failure: CliError): CliError | undefined
}

interface SharedLineParts {
  endpoint: typeof endpoints.chat | typeof endpoints.image
  options: BodyFlags
  inputs: PromptArguments
  /** Called for lines without a model. Throws a usage error if no model is set. */
  model(): string
  schema?: AnswerSchema | undefined
  openReader(line: BatchLine, input: ParsedBatchLine): BatchAnswerReader | Promise<BatchAnswerReader>
}

export function recordLineAnswer({ reportData }: Context, line: BatchLine, summary: AnswerSummary): void {
  addAnswerSummaryToReport(reportData, summary)
  recordAnswerUsage(line, readTokenUsage(summary))
}

/**
 * Placeholder for the prompt in the sample body. No flag or text file can contain a NUL, so the placeholder
 * occurs nowhere else in the body.
 */
const placeholder = 'the prompt\0'

export async function createLineCaller(
  context: Context,
  settings: ResolvedSettings,
  { endpoint, options, inputs, model, schema, openReader }: SharedLineParts,
) {
  const { prompt, files } = inputs
  const bodyParts = createBodyParts(options, inputs, schema)
  const before = await readPromptTexts(context.input, prompt)
  const after = [...files, ...(schema?.parts ?? [])]
  // Lines with a prompt have the same body except for the prompt. Inserting each prompt into one sample is
  // several times faster than building each body.
  const sample = buildRequestBody({ ...bodyParts, turn: [...before, { text: placeholder }, ...after] })
  const pieces = sample.split(JSON.stringify(placeholder))
  const insertPrompt = (prompt: string) => pieces.join(JSON.stringify(prompt))
  const buildGiven = (text: string) =>
    buildRequestBody({ ...bodyParts, given: { text, name: 'its body' }, turn: [...before, ...after] })
  // A batch prints the responses in its results, so `raw` is off for each request.
  const caller = createServiceCaller({ ...context, flags: { ...context.flags, raw: false } }, settings, true)
  const { family, retries } = settings.values
  const { retryUnknown = false } = context.flags

  /** A retry of the call requests only the answers and parts that have not arrived yet. */
  function createCall(model: string, body: string, input: ParsedBatchLine): BatchLineCall {
    let request: AnswerRequest | undefined
    let current: { answer: ContinuedAnswer; reader: BatchAnswerReader } | undefined
    /** The answer before the current one, which did not match the schema. */
    let previous: { reader: BatchAnswerReader; mismatch: CliError } | undefined

    async function query(body: Uint8Array, line: BatchLine, requireNext: () => void) {
      if (previous && !current) requireRetry(previous.mismatch, requireNext)
      current ??= { answer: new ContinuedAnswer(body), reader: await openReader(line, input) }
      const { answer, reader } = current
      const onAttempt = (getState: () => DeliveryState) => {
        line.attempts++
        line.getDeliveryState = getState
      }
      const send: SendPartRequest = (part, read) =>
        caller.call(endpoint, { params: { family, model }, body: part, onAttempt }, read)
      try {
        const { content, warnings } = await answer.receive(send, reader, { requireNext, isRepeated: true })
        const { summary } = answer.end
        return {
          content,
          model: summary.model,
          stopReason: summary.lacksStopReason || summary.isEndAssumed ? null : summary.stopReason,
          warning: warnings.join('; ') || undefined,
        }
      } catch (error) {
        if (error instanceof CliError && error.details.isMismatch) {
          previous = { reader, mismatch: error }
          current = undefined
          throw error
        }
        throw addReceivedPart(toFailure(error)) ?? error
      }
    }

    const addReceivedPart = (failure: CliError): CliError | undefined =>
      current?.reader.addReceivedPart(failure) ?? previous?.reader.addReceivedPart(failure)

    return {
      model,
      body,
      addReceivedPart,
      send(line, requireNext) {
        const queryNext = (body: Uint8Array) => query(body, line, requireNext)
        // `Buffer.from` would put the bodies of several lines into one pool of 8 KiB. V8 frees the pool only
        // after the last of these lines.
        request ??= { body: new TextEncoder().encode(body), retries: 0 }
        return schema ? schema.retryUntilMatching(request, queryNext) : queryNext(request.body)
      },
    }
  }

  return {
    retry: { repeat: endpoint.repeat, retries, retryUnknown },
    preview: ({ model, body }: BatchLineCall) =>
      caller.preview(endpoint, { params: { family, model }, body: Buffer.from(body) }),
    prepare(line: ParsedBatchLine): BatchLineCall {
      if (line.model !== undefined) encodePathSegment('model', line.model)
      const body = 'prompt' in line ? insertPrompt(line.prompt) : buildGiven(line.body)
      return createCall(line.model ?? model(), body, line)
    },
  }
}

/**
 * If the batch allows no further request, throws the mismatch with the schema as a failure that is not
 * retried.
 */
function requireRetry(mismatch: CliError, requireNext: () => void): void {
  try {
    requireNext()
  } catch {
    throw mismatch.with({ isMismatch: false })
  }
}
