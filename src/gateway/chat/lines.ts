import { type AnswerRequirement, describeCut, describeMissingPart } from '../../content/footer.ts'
import { readArgumentInputs } from '../../content/prompt.ts'
import type { AnswerSchema, SchemaMismatch } from '../../content/schema/schema.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { type CliError, toFailure } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import type { Timers } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { createBodyCollector, type HttpResponse } from '../../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { readAnswerBody } from '../answer-body.ts'
import {
  type ActiveLine,
  createLineSender,
  type LineRequest,
  type ParsedLine,
  type RequireContinuation,
} from '../line-body.ts'
import { type AnswerPart, joinResponseBodies, LongAnswer } from '../long-answer.ts'
import { type ChatOptions, chooseChatModel, loadAnswerSchema } from './chat.ts'

/**
 * Returns the functions that prepare and preview the chat requests of a batch. Throws a `CliError` if a flag or
 * an input is invalid.
 */
export async function prepareChatLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ChatOptions; words: string[] },
) {
  const { values } = settings
  const { host, flags } = context
  const inputs = await readArgumentInputs(context.input, options, words)
  const quiet = { ...context, messages: { ...context.messages, note() {} } }
  const { schemaRetries = 0 } = options
  const schema =
    inputs.schema &&
    (await (await loadAnswerSchema()).createAnswerSchema(quiet, settings, inputs.schema, schemaRetries))
  const model = () => chooseChatModel(options.model, values)
  const common = { endpoint: endpoints.chat, options, inputs, model, schema }
  const caller = await createLineSender(context, settings, common)
  const { raw: isRaw } = flags
  const failOnCut = options.failOnCut ?? values.failOnCut
  const requirement = failOnCut ? 'uncut' : isRaw || schema ? 'anything' : 'text'

  async function query(
    { model, body: first }: LineRequest,
    state: LineState,
    line: ActiveLine,
    requireNext: RequireContinuation,
  ) {
    const earlier = state.mismatches.values()
    const countAnswer = (summary: AnswerSummary) => caller.countAnswer(line, summary)
    const queryOnce = async (body: Uint8Array) => {
      const known = earlier.next()
      if (!known.done) return known.value
      if (!state.parts) requireRetry(state.mismatches.at(-1), requireNext)
      state.parts ??= new ReceivedParts(body)
      const { parts } = state
      const reader = {
        read: (response: HttpResponse) => parts.read(response, { isRaw, countAnswer, timers: host.timers }),
        finish: (response: ReadableResponse) => parts.finish(response, { requirement, schema }),
        addReceived: (failure: CliError) => addReceived(state, failure),
      }
      const { value, ...facts } = await caller.receive({
        model,
        line,
        answer: parts.answer,
        reader,
        requireNext,
      })
      state.parts = undefined
      if (!('failure' in value)) return { ...facts, content: value }
      state.mismatches.push(value)
      return value
    }
    const answer = await (schema ? schema.retryUntilMatching(first, queryOnce) : queryOnce(first))
    if ('failure' in answer) throw answer.failure
    return answer
  }

  return {
    ...caller,
    async prepare(input: ParsedLine) {
      const request = await caller.build(input)
      const state: LineState = { mismatches: [], parts: undefined }
      return {
        ...request,
        send: (line: ActiveLine, requireNext: RequireContinuation) =>
          query(request, state, line, requireNext),
        addReceived: (failure: CliError) => addReceived(state, failure),
      }
    },
  }
}

/**
 * If the last answer did not match the schema, and the token limit or the deadline of the batch allows no
 * further request, throws the failure of this answer.
 */
function requireRetry(mismatch: SchemaMismatch | undefined, requireNext: RequireContinuation): void {
  if (!mismatch) return
  try {
    requireNext()
  } catch {
    throw mismatch.failure
  }
}

/** Answers received for one line of a batch. A retry of the line continues after these answers. */
interface LineState {
  mismatches: SchemaMismatch[]
  parts: ReceivedParts | undefined
}

/**
 * Returns the failure with the received parts, or else with the last answer that did not match the schema.
 * Returns `undefined` if nothing was received.
 */
function addReceived({ parts, mismatches }: LineState, failure: CliError): CliError | undefined {
  const mismatch = mismatches.at(-1)
  return parts?.addReceived(failure) ?? (mismatch && failure.with({ answer: mismatch.text }))
}

interface PartReading {
  isRaw: boolean | undefined
  countAnswer(summary: AnswerSummary): void
  timers: Timers
}

interface AnswerChecks {
  requirement: AnswerRequirement
  schema: AnswerSchema | undefined
}

class ReceivedParts {
  readonly answer: LongAnswer
  #text = ''
  #pieces: string[] = []
  readonly #bodies: { bytes: Uint8Array; contentType: string }[] = []
  /**
   * Decoder of the last part. Storing a function that reads the rest would keep 7 KiB of each line in V8's old
   * generation.
   */
  #decoder: AnswerDecoder | undefined

  constructor(body: Uint8Array) {
    this.answer = new LongAnswer(body)
  }

  async read(response: HttpResponse, { isRaw, countAnswer, timers }: PartReading): Promise<AnswerPart> {
    const contentType = response.headers['content-type'] ?? ''
    this.#pieces = []
    const body = isRaw ? createBodyCollector() : undefined
    const decoder = createAnswerDecoder(contentType, {
      text: (text) => void this.#pieces.push(text),
      raw: undefined,
    })
    const { summary, otherContent } = decoder
    this.#decoder = decoder
    function onChunk(chunk: Uint8Array): void {
      body?.add(chunk)
      decoder.push(chunk)
    }
    try {
      const { isAssumed } = await readAnswerBody(response, decoder, {
        onChunk,
        readsToEnd: () => true,
        timers,
      })
      decoder.end()
      countAnswer(summary)
      this.#text = this.#received
      this.#pieces = []
      if (body) this.#bodies.push({ bytes: body.bytes(), contentType })
      return {
        summary,
        hasContent: decoder.hasContent(),
        otherContent,
        isAssumed,
        isDamaged: decoder.isDamaged(),
      }
    } catch (error) {
      if (readTokenUsage(summary)) countAnswer(summary)
      throw toFailure(error)
    }
  }

  /** Throws a `CliError` with the text if required content is missing. */
  async finish(response: ReadableResponse, { requirement, schema }: AnswerChecks) {
    const text = this.#text
    const { end } = this.answer
    const isBlank = text.trim() === ''
    const missing = describeMissingPart(end, isBlank, requirement)
    // An answer without text may have other paid content, so the failure gets its body.
    if (missing !== undefined)
      throw createResponseError(missing).with({ answer: isBlank ? this.#readUnread() : text })
    const checked = await schema?.check(text, describeCut(end))
    if (!checked || !('failure' in checked)) return this.#readResponse() ?? checked ?? { text }
    const { attempts } = this.answer
    return { ...checked, failure: response.fail(checked.failure).with({ attempts }) }
  }

  #readResponse(): { response: string } | undefined {
    const bodies = this.#bodies.map(readJson)
    return bodies.length === 0 ? undefined : { response: joinResponseBodies(bodies) }
  }

  /**
   * Returns the failure with the received text or the undecoded body, or `undefined` if nothing was received.
   */
  addReceived(failure: CliError): CliError | undefined {
    // The body of an error response is already in the failure's details.
    const answer = this.#received || (failure.details.body === undefined ? this.#readUnread() : '')
    return answer === '' ? undefined : failure.with({ answer })
  }

  #readUnread(): string {
    return new TextDecoder().decode(this.#decoder?.unread().subarray(0, maxSavedBytes))
  }

  get #received(): string {
    return this.#text + this.#pieces.join('')
  }
}

/** Limits the saved body, because a longer result could exceed V8's longest string. */
const maxSavedBytes = 64 * 1024 * 1024

function readJson({ bytes, contentType }: { bytes: Uint8Array; contentType: string }): string {
  const text = new TextDecoder().decode(bytes)
  try {
    parseReceivedBody(text, contentType)
  } catch (error) {
    throw toFailure(error).with({ answer: text })
  }
  return text
}
