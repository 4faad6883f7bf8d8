import { type AnswerRequirement, describeCut, findMissingPart, listWarnings } from '../../content/footer.ts'
import type { AnswerSchema, Mismatch } from '../../content/schema/schema.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { asFailure, CliError } from '../../errors.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import type { Timers } from '../../timers.ts'
import { decodeBodyText } from '../../wire/charset.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { collectBody, type HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { OtherContent } from '../../wire/gateway/answer-forms.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { readAnswerBody } from '../answer-body.ts'
import {
  type AnswerCallbacks,
  createLineSender,
  type LineContext,
  type LineInput,
  type LineRequest,
  type RequireContinuation,
} from '../line-body.ts'
import { type AnswerPart, joinResponses, LongAnswer } from '../long-answer.ts'
import { type ChatOptions, chooseModel, readSchema } from './chat.ts'

/** Prepares to send a chat request for each line of a batch. Throws a usage error. */
export async function prepareChatLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ChatOptions; words: string[] },
) {
  const { values } = settings
  const { timers, flags } = context
  const schema = await readSchema({ ...context, note() {} }, settings, options)
  const model = () => chooseModel(options.model, values)
  const common = { endpoint: endpoints.chat, options, words, model, schema }
  const caller = await createLineSender(context, settings, common)
  const { raw: isRaw } = flags
  const failOnCut = options.failOnCut ?? values.failOnCut
  const demand = failOnCut ? 'uncut' : isRaw || schema ? 'anything' : 'text'

  async function ask(
    request: LineRequest,
    state: LineState,
    line: LineContext,
    requireNext: RequireContinuation,
  ) {
    const earlier = state.mismatches.values()
    const { onSummary, onEnd } = caller.createEvents(line)
    const send = caller.createSend(request.model, line)
    const askOnce = async (body: Uint8Array, isLast: boolean) => {
      const known = earlier.next()
      if (!known.done) return known.value
      if (!state.parts) requireRetry(state.mismatches.at(-1), requireNext)
      state.parts ??= new ReceivedParts(body)
      const { parts } = state
      const read = (response: HttpResponse) => parts.read(response, { isRaw, onSummary, timers })
      const finish = () => parts.finish({ demand, schema, isLast, onEnd })
      const answer = await parts.answer
        .receive(send, { read, finish }, { requireNext, isRepeated: true })
        .catch((error: unknown) => {
          throw parts.addTo(error)
        })
      state.parts = undefined
      if ('failure' in answer) state.mismatches.push(answer)
      return answer
    }
    const answer = await (schema
      ? schema.retryUntilMatching(request.body, askOnce)
      : askOnce(request.body, true))
    if ('failure' in answer) throw answer.failure
    return answer
  }

  return {
    ...caller,
    async prepare(question: LineInput) {
      const request = await caller.build(question)
      const state: LineState = { mismatches: [], parts: undefined }
      return {
        ...request,
        send: (line: LineContext, requireNext: RequireContinuation) => ask(request, state, line, requireNext),
        addReceived: (failure: CliError) => state.parts?.addReceived(failure),
      }
    },
  }
}

/** Throws the failure of the last answer if the limit of tokens or the deadline allows no further request. */
function requireRetry(mismatch: Mismatch | undefined, requireNext: RequireContinuation): void {
  if (!mismatch) return
  try {
    requireNext()
  } catch {
    throw mismatch.failure
  }
}

/** Answers that a line has received; a retry of the line continues after them. */
interface LineState {
  /** Answers that did not match the schema. */
  mismatches: Mismatch[]
  /** Parts of an incomplete answer. */
  parts: ReceivedParts | undefined
}

interface PartReading extends Pick<AnswerCallbacks, 'onSummary'> {
  isRaw: boolean | undefined
  timers: Timers
}

interface AnswerChecks extends Pick<AnswerCallbacks, 'onEnd'> {
  demand: AnswerRequirement
  schema: AnswerSchema | undefined
  /** A mismatch is a failure. */
  isLast: boolean
}

/** Collects the parts of one answer for the result of a line. */
class ReceivedParts {
  readonly answer: LongAnswer
  /** Text of all complete parts. */
  #text = ''
  /** Text of the part that is being read. */
  #pieces: string[] = []
  /** Bodies of the parts with `--raw`. */
  readonly #bodies: { bytes: Uint8Array; contentType: string }[] = []
  readonly #otherContent = new Set<OtherContent>()
  #isAssumed = false
  #isDamaged = false
  #readUnread = () => ''

  constructor(body: Uint8Array) {
    this.answer = new LongAnswer(body)
  }

  /** Throws a `CliError` with the received text if the part is incomplete. */
  async read(response: HttpResponse, { isRaw, onSummary, timers }: PartReading): Promise<AnswerPart> {
    const contentType = response.headers['content-type'] ?? ''
    this.#pieces = []
    const body = isRaw ? collectBody() : undefined
    const decoder = createAnswerDecoder(contentType, {
      text: (text) => void this.#pieces.push(text),
      raw: undefined,
    })
    const { summary, otherContent } = decoder
    this.#readUnread = () => decodeBodyText(decoder.unread().subarray(0, maxSavedBytes), contentType)
    function onChunk(chunk: Uint8Array): void {
      body?.add(chunk)
      decoder.push(chunk)
    }
    try {
      const { isAssumed } = await readAnswerBody(response, decoder, {
        onChunk,
        readsRest: () => true,
        timers,
      })
      decoder.end()
      this.#isAssumed ||= isAssumed
      this.#isDamaged ||= decoder.isDamaged()
    } catch (error) {
      if (readTokenUsage(summary)) onSummary(summary)
      // The details of an error response already have its body as `body`.
      const hasBody = error instanceof CliError && error.details.body !== undefined
      throw withAnswer(asFailure(error), this.#received || (hasBody ? '' : this.#readUnread()))
    }
    onSummary(summary)
    this.#text = this.#received
    this.#pieces = []
    for (const what of otherContent) this.#otherContent.add(what)
    if (body) this.#bodies.push({ bytes: body.bytes(), contentType })
    return { summary, hasContent: decoder.hasContent() }
  }

  /** Throws a `CliError` with the text if the answer lacks required content. */
  async finish({ demand, schema, isLast, onEnd }: AnswerChecks) {
    const text = this.#text
    const { summary } = this.answer
    const end = {
      summary,
      otherContent: this.#otherContent,
      isAssumed: this.#isAssumed,
      isDamaged: this.#isDamaged,
      isBlank: text.trim() === '',
    }
    const lack = findMissingPart(end, demand)
    // An answer without text may have other content that was paid for.
    if (lack !== undefined)
      throw createResponseError(lack).with({ answer: end.isBlank ? this.#readUnread() : text })
    onEnd(end)
    const checked = await schema?.check(text, describeCut(end))
    const { model, stopReason } = summary
    const known = { model, stopReason, warning: listWarnings(end).join('; ') || undefined }
    if (checked && 'failure' in checked) {
      if (isLast) throw checked.failure
      return { ...known, ...checked }
    }
    return { ...known, content: this.#readResponse() ?? checked ?? { text } }
  }

  /** Returns one response, or a list of several. */
  #readResponse(): { response: string } | undefined {
    const bodies = this.#bodies.map(readJson)
    return bodies.length === 0 ? undefined : { response: joinResponses(bodies) }
  }

  /** Adds the text of complete parts to a failure without text. */
  addTo(error: unknown): unknown {
    // Without a received text, there is nothing to save.
    if (this.#text === '') return error
    const failure = asFailure(error)
    return failure.details.answer === undefined ? withAnswer(failure, this.#text) : failure
  }

  /**
   * Adds the received text, or an undecoded body, to a failure. Returns `undefined` if nothing was received.
   */
  addReceived(failure: CliError): CliError | undefined {
    const answer = this.#received || this.#readUnread()
    return answer === '' ? undefined : failure.with({ answer })
  }

  get #received(): string {
    return this.#text + this.#pieces.join('')
  }
}

const withAnswer = (error: unknown, answer: string): unknown =>
  error instanceof CliError && answer !== '' ? error.with({ answer }) : error

/** Maximum size of a saved body. The result line of a longer body exceeds the maximum string length. */
const maxSavedBytes = 64 * 1024 * 1024

/** Returns the body on one line. Throws a `CliError` with the answer if it is not JSON. */
function readJson({ bytes, contentType }: { bytes: Uint8Array; contentType: string }): string {
  const text = decodeBodyText(bytes, contentType)
  try {
    parseReceivedBody(text, contentType)
  } catch (error) {
    throw withAnswer(error, text)
  }
  return text
}
