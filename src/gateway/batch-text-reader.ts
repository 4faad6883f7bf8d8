import type { BatchLine } from '../batch/input.ts'
import { describeCutAnswer, describeUnusableAnswer, listAnswerWarnings } from '../content/answer-checks.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { readTokenUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { type CliError, toFailure } from '../errors.ts'
import type { ReadableResponse } from '../http/call.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../wire/gateway/answer-decoder.ts'
import { createResponseError } from '../wire/problem/problem.ts'
import { parseReceivedBody } from '../wire/received-json.ts'
import { readAnswerBody } from './answer-body.ts'
import type { AnswerPartOutcome, ContinuedAnswer } from './continued-answer.ts'
import { type BatchAnswerReader, recordLineAnswer } from './line-call.ts'

interface BatchTextRules {
  context: Context
  failOnCut?: boolean
  schema?: AnswerSchema | undefined
  /**
   * Empty list for results of `image --raw`. Without `files`, such a result would count as a result of
   * `chat`.
   */
  files?: string[]
}

/** Reads the text of an answer. With `--raw`, reads the bodies of the responses instead. */
export class BatchTextReader implements BatchAnswerReader {
  readonly #line: BatchLine
  readonly #rules: BatchTextRules
  readonly #isRaw: boolean
  /** The complete parts, and at the end the part that is read or that failed, if any. */
  #parts: AnswerPart[] = []
  /**
   * Decoder of the last received part of the answer. A closure instead of this field would keep 7 KiB per
   * line in the old generation of V8.
   */
  #decoder: AnswerDecoder | undefined

  constructor(line: BatchLine, rules: BatchTextRules) {
    this.#line = line
    this.#rules = rules
    this.#isRaw = rules.context.flags.raw ?? false
  }

  async read(response: HttpResponse): Promise<AnswerPartOutcome> {
    const { context } = this.#rules
    const isRaw = this.#isRaw
    const contentType = response.headers['content-type'] ?? ''
    const part: AnswerPart = { pieces: [], unprinted: [], isComplete: false }
    const { pieces } = part
    this.#parts = [...this.#parts.filter(({ isComplete }) => isComplete), part]
    const utf8 = new TextDecoder()
    const addRaw = (data: Uint8Array | string) =>
      void pieces.push(typeof data === 'string' ? data : utf8.decode(data, { stream: true }))
    const decoder = createAnswerDecoder(contentType, {
      text: (text) => void (isRaw || pieces.push(text)),
      raw: isRaw ? addRaw : undefined,
      unprinted: (json) => void (isRaw || part.unprinted.push(json)),
    })
    this.#decoder = decoder
    const { summary } = decoder
    try {
      const outcome = await readAnswerBody(response, decoder, { timers: context.host.timers })
      // Throws for a stream of several events, because the result contains the response as one JSON value.
      if (isRaw) parseReceivedBody(pieces.join(''), contentType)
      recordLineAnswer(context, this.#line, summary)
      part.isComplete = true
      return outcome
    } catch (error) {
      if (readTokenUsage(summary)) recordLineAnswer(context, this.#line, summary)
      throw toFailure(error)
    }
  }

  async finish(_: ReadableResponse, { end }: ContinuedAnswer) {
    const { files, failOnCut, schema } = this.#rules
    const isRaw = this.#isRaw
    const warnings = listAnswerWarnings(end, !isRaw, 'is in "response"')
    const text = this.#received
    const isBlank = !isRaw && text.trim() === ''
    const missing = describeUnusableAnswer(end, { isBlank, isRaw, failOnCut })
    if (missing !== undefined) throw createResponseError(missing)
    const bodies = isRaw ? this.#texts : this.#unprinted
    const response = bodies.length > 1 ? `[${bodies.join(',')}]` : bodies[0]
    if (isRaw) return { content: { files, response }, warnings }
    const json = await schema?.check(text, describeCutAnswer(end))
    return { content: json === undefined ? { text, response } : { json, response }, warnings }
  }

  addReceivedPart(failure: CliError): CliError | undefined {
    // The failure's details already contain the body of an error response, so the body is not added again.
    const isKnown = failure.details.body !== undefined && !this.#decoder?.hasContent()
    if (isKnown && !this.#parts.some(({ isComplete }) => isComplete)) return undefined
    const answer = this.#answer
    return answer === '' ? undefined : failure.with({ answer })
  }

  get #answer(): string {
    const text = this.#received
    return text.trim() === ''
      ? new TextDecoder().decode(this.#decoder?.unread().subarray(0, maxSavedBytes))
      : [text, ...this.#unprinted].join('\n')
  }

  get #received(): string {
    return this.#texts.filter((text) => text !== '').join(this.#isRaw ? '\n' : '')
  }

  get #texts(): string[] {
    return this.#parts.map(({ pieces }) => pieces.join(''))
  }

  get #unprinted(): string[] {
    return this.#parts.flatMap(({ unprinted }) => unprinted)
  }
}

interface AnswerPart {
  /** Pieces of the text, or with `--raw` of the response body. */
  pieces: string[]
  /** JSON with content that is not in the text. */
  unprinted: string[]
  isComplete: boolean
}

/**
 * Limit of the saved body. JSON escapes make the body longer in the results file, and each line of this file
 * has to fit into V8's longest string.
 */
const maxSavedBytes = 64 * 1024 * 1024
