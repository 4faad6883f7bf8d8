import { usageOf } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { CliError, type FailureDetails } from '../errors.ts'
import type { ReadableResponse } from '../http/call.ts'
import { addToSums } from '../summary.ts'
import { type AnswerSummary, hasContinuation } from '../wire/gateway/answer-forms.ts'
import { createBodyText } from '../wire/json/body-text.ts'
import { createAssignment, editJson } from '../wire/json/edit.ts'
import { notUnderstoodError } from '../wire/problem/problem.ts'

/** Part of an answer that one response has. */
export interface AnswerPart {
  summary: AnswerSummary
  /** The part has text, an image or something else that belongs to the answer. */
  hasContent: boolean
}

/** Reads the responses that make up one answer. */
export interface PartReader<T> {
  /** Throws a `CliError` if the part is not whole. */
  read(response: ReadableResponse): Promise<AnswerPart>
  /** Called after the last part, while its response still counts as open. */
  finish(response: ReadableResponse): Promise<T>
}

/** Sends one request of an answer, and returns the value that `read` makes of its response. */
export type SendPart = <T>(body: Uint8Array, read: (response: ReadableResponse) => Promise<T>) => Promise<T>

const maxRequests = 64

/**
 * State of one answer, which may take several requests. A response that ends with `CONTINUATION` holds a part; the next
 * request has the same body and the part's token. After a failure the same state continues where it was.
 */
export class LongAnswer {
  /** Facts of the last part; its token counts are sums of all parts. */
  summary: AnswerSummary = {}
  #body: Uint8Array
  #parts = 0
  #attempts = 0
  #isWhole = false

  constructor(body: Uint8Array) {
    this.#body = body
  }

  /** A part was received. */
  get isBegun(): boolean {
    return this.#parts > 0
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /**
   * Requests and reads parts until the answer is whole. `requireNext` throws if no further request may be sent. Throws a
   * `CliError`, which is `response` also if the connection for a further request fails: something was answered. With
   * `isRepeated` that failure stays as it is, because the caller repeats the request.
   */
  async receive<T>(
    send: SendPart,
    { read, finish }: PartReader<T>,
    { requireNext, isRepeated = false }: { requireNext?(): void; isRepeated?: boolean } = {},
  ): Promise<T> {
    for (;;) {
      const attempts = this.#attempts
      try {
        if (this.isBegun) requireNext?.()
        const end = await send(this.#body, async (response) => {
          const part = await read(response)
          this.#attempts += response.attempts
          this.#add(part)
          return this.#isWhole ? { value: await finish(response) } : undefined
        })
        if (end) return end.value
      } catch (error) {
        throw attempts > 0 ? this.#explain(error, attempts, isRepeated) : error
      }
    }
  }

  /** Throws a `CliError` if the answer is neither whole nor can be continued. */
  #add({ summary, hasContent }: AnswerPart): void {
    const { continuationToken: earlierToken } = this.summary
    const { continuationToken: token } = summary
    const isStuck = this.isBegun && !hasContent && (token === undefined || token === earlierToken)
    const usage: Record<string, number | null> = {}
    addToSums(usage, usageOf(this.summary))
    addToSums(usage, usageOf(summary))
    this.summary = { ...summary, ...usage }
    this.#parts++
    if (isStuck) throw incomplete('its continuation has neither text nor a new token')
    this.#isWhole = !hasContinuation(summary)
    if (this.#isWhole) return
    if (token === undefined) throw incomplete('the service says CONTINUATION and sends no token')
    if (this.#parts === maxRequests) throw incomplete(`it has no end after ${maxRequests} requests`)
    this.#body = addToken(this.#body, token)
  }

  /** Adds to the failure of a further request that parts were answered before. */
  #explain(error: unknown, attempts: number, isRepeated: boolean): unknown {
    if (!(error instanceof CliError)) return error
    const { kind, message, details } = error
    const sum = { attempts: attempts + (details.attempts ?? 0) }
    if (this.#isWhole) return error.with(sum)
    const known: FailureDetails = { ...sum, sent: details.sent === 'unknown' ? 'unknown' : 'yes' }
    const why =
      kind === 'file' || kind === 'stopped' ? message : `the answer could not be continued: ${message}`
    if (kind !== 'not-sent' || isRepeated) return error.with(known, why)
    const { consequence, ...rest } = details
    return new CliError('response', why, { ...rest, ...known, delivery: 'answered', retry: 'later' })
  }
}

/** Changes nothing else in the body: the service refuses a token of another request. */
function addToken(body: Uint8Array, token: string): Uint8Array {
  const text = Buffer.from(body).toString()
  const assignment = createAssignment(['continuationToken'], JSON.stringify(token))
  try {
    return Buffer.from(createBodyText(() => editJson(text, [assignment])))
  } catch (error) {
    throw error instanceof CliError ? incomplete(`for its continuation, ${error.message}`) : error
  }
}

/** Returns a check that throws once the deadline of the run has passed. */
export const createDeadlineCheck =
  ({ limit, timers }: Pick<Context, 'limit' | 'timers'>) =>
  () => {
    if (timers.now() < limit.deadline) return
    throw notUnderstoodError('the deadline passed').with({ deadline: true, retry: 'later' })
  }

const incomplete = (why: string) => notUnderstoodError(`the answer is not complete: ${why}`)
