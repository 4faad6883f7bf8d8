import type { BatchLine, BatchLineAnswer, BatchLineCall } from '../../batch/input.ts'
import type { ParsedBatchLine } from '../../batch/line-form.ts'
import {
  type AnswerRequirement,
  describeCutAnswer,
  describeUnmetRequirement,
  isCutResult,
} from '../../content/answer-checks.ts'
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
import { createResponseError } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { readAnswerBody } from '../answer-body.ts'
import {
  type AnswerPart,
  type AnswerPartReader,
  ContinuedAnswer,
  joinResponseBodies,
} from '../continued-answer.ts'
import { type BatchLineRequest, type BatchLineSender, createBatchLineSender } from '../line-body.ts'
import { type ChatOptions, chooseChatModel, loadSchemaModule } from './chat.ts'

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
    (await (await loadSchemaModule()).createAnswerSchema(quiet, settings, inputs.schema, schemaRetries))
  const model = () => chooseChatModel(options.model, values)
  const common = { endpoint: endpoints.chat, options, inputs, model, schema }
  const caller = await createBatchLineSender(context, settings, common)
  const { raw: isRaw = false } = flags
  const failOnCut = options.failOnCut ?? values.failOnCut
  const requirement = failOnCut ? 'uncut' : isRaw || schema ? 'anything' : 'text'
  const rules = { caller, requirement, schema, isRaw, timers: host.timers } as const
  return {
    ...caller,
    isAccepted: failOnCut ? (result: Record<string, unknown>) => !isCutResult(result) : undefined,
    prepare: async (input: ParsedBatchLine) => new ChatLine(await caller.build(input), rules),
  }
}

interface ChatLineRules {
  caller: Pick<BatchLineSender, 'receive' | 'countAnswer'>
  requirement: AnswerRequirement
  schema: AnswerSchema | undefined
  isRaw: boolean
  timers: Timers
}

/** A retry requests only the answers and parts that have not arrived yet. */
class ChatLine implements BatchLineCall {
  readonly model: string
  readonly body: Uint8Array
  readonly #rules: ChatLineRules
  /** Received answers. After an answer that does not match the schema, `--schema-retries` adds another. */
  readonly #answers: ReceivedParts[] = []

  constructor({ model, body }: BatchLineRequest, rules: ChatLineRules) {
    this.model = model
    this.body = body
    this.#rules = rules
  }

  async send(line: BatchLine, requireNext: () => void) {
    const { schema } = this.#rules
    let count = 0
    const query = (body: Uint8Array) => this.#query(count++, body, line, requireNext)
    const answer = await (schema ? schema.retryUntilMatching(this.body, query) : query(this.body))
    if ('failure' in answer) throw answer.failure
    return answer
  }

  /** If nothing of the last answer was received, returns the failure with the answer before it. */
  addReceived(failure: CliError): CliError | undefined {
    for (const answer of this.#answers.toReversed()) {
      const found = answer.addReceived(failure)
      if (found) return found
    }
    return undefined
  }

  async #query(index: number, body: Uint8Array, line: BatchLine, requireNext: () => void) {
    const { model } = this
    const addReceived = (failure: CliError) => this.addReceived(failure)
    const { [index]: known, [index - 1]: previous } = this.#answers
    if (known?.mismatch) return known.mismatch
    if (!known) requireRetry(previous?.mismatch, requireNext)
    const reader = known ?? new ReceivedParts(body, line, this.#rules)
    this.#answers[index] = reader
    const { answer } = reader
    const isTextOnly = !this.#rules.isRaw
    const reading = { model, line, answer, reader, addReceived, requireNext, isTextOnly }
    const { value, ...facts } = await this.#rules.caller.receive(reading)
    if (!('failure' in value)) {
      const stopReason = answer.end.summary.lacksStopReason ? null : facts.stopReason
      return { ...facts, stopReason, content: value }
    }
    reader.mismatch = value
    return value
  }
}

function requireRetry(mismatch: SchemaMismatch | undefined, requireNext: () => void): void {
  if (!mismatch) return
  try {
    requireNext()
  } catch {
    throw mismatch.failure
  }
}

class ReceivedParts implements AnswerPartReader<BatchLineAnswer['content'] | SchemaMismatch> {
  readonly answer: ContinuedAnswer
  mismatch: SchemaMismatch | undefined
  readonly #line: BatchLine
  readonly #rules: ChatLineRules
  #text = ''
  #pieces: string[] = []
  readonly #bodies: { bytes: Uint8Array; contentType: string }[] = []
  /**
   * Decoder of the last received part of the answer. The field is the decoder itself, because a closure over
   * it would keep 7 KiB per line in V8's old generation.
   */
  #decoder: AnswerDecoder | undefined

  constructor(body: Uint8Array, line: BatchLine, rules: ChatLineRules) {
    this.answer = new ContinuedAnswer(body)
    this.#line = line
    this.#rules = rules
  }

  async read(response: HttpResponse): Promise<AnswerPart> {
    const { caller, isRaw, timers } = this.#rules
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
      const { isEndAssumed } = await readAnswerBody(response, decoder, {
        onChunk,
        readsToEnd: () => true,
        timers,
      })
      decoder.end()
      caller.countAnswer(this.#line, summary)
      this.#text = this.#received
      this.#pieces = []
      if (body) this.#bodies.push({ bytes: body.bytes(), contentType })
      return {
        summary,
        hasContent: decoder.hasContent(),
        otherContent,
        isEndAssumed,
        isDamaged: decoder.isDamaged(),
      }
    } catch (error) {
      if (readTokenUsage(summary)) caller.countAnswer(this.#line, summary)
      throw toFailure(error)
    }
  }

  async finish(response: ReadableResponse): Promise<BatchLineAnswer['content'] | SchemaMismatch> {
    const { requirement, schema } = this.#rules
    const text = this.#text
    const { end } = this.answer
    const isBlank = text.trim() === ''
    const missing = describeUnmetRequirement(end, isBlank, requirement)
    // An answer without text may have other content that was paid for, so its body becomes a part of the
    // failure.
    if (missing !== undefined)
      throw createResponseError(missing).with({ answer: isBlank ? this.#readUnread() : text })
    const checked = await schema?.check(text, describeCutAnswer(end))
    if (!checked || !('failure' in checked)) return this.#readResponse() ?? checked ?? { text }
    const { attempts } = this.answer
    return { ...checked, failure: response.fail(checked.failure).with({ attempts }) }
  }

  #readResponse(): { response: string } | undefined {
    const bodies = this.#bodies.map(readJson)
    return bodies.length === 0 ? undefined : { response: joinResponseBodies(bodies) }
  }

  addReceived(failure: CliError): CliError | undefined {
    // The failure's details already contain the body of an error response, so the body is not added again.
    const hasMore = failure.details.body === undefined || this.#decoder?.hasContent()
    const answer = this.#received || (hasMore ? this.#readUnread() : '')
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
