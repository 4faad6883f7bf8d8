import { type AnswerOutcome, describeCutAnswer } from '../content/answer-checks.ts'
import { readTokenUsage } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { ReadableResponse } from '../http/call.ts'
import { addCountsToSums } from '../report-data.ts'
import { needsContinuation } from '../wire/gateway/answer-forms.ts'
import { createJsonAssignment, editJson } from '../wire/json/edit.ts'
import { createResponseError } from '../wire/problem/problem.ts'

export interface AnswerPartOutcome extends AnswerOutcome {
  hasContent: boolean
}

export interface AnswerPartReader<T> {
  /** Throws a `CliError` if the part is incomplete. */
  read(response: ReadableResponse): Promise<AnswerPartOutcome>
  /** Checks the whole answer after the last part. If the check throws, the last request fails. */
  finish(response: ReadableResponse, answer: ContinuedAnswer): Promise<T>
}

export type SendPartRequest = <T>(
  body: Uint8Array,
  read: (response: ReadableResponse) => Promise<T>,
) => Promise<T>

const maxRequests = 64

/**
 * State of an answer that may need several requests. A response with the finish reason `CONTINUATION` is a
 * part of the answer. The request for the next part has the same body and the token of the previous part.
 * After a failure, a retry continues with the same state.
 */
export class ContinuedAnswer {
  /** Outcome of the last part. Its token counts, `otherContent` and flags cover all parts. */
  end: AnswerOutcome = { summary: {}, otherContent: new Set() }
  isWhole = false
  #body: Uint8Array
  readonly #sentTokens = new Set<string>()
  #parts = 0

  constructor(body: Uint8Array) {
    this.#body = body
  }

  get isBegun(): boolean {
    return this.#parts > 0
  }

  /**
   * Requests parts until the answer is whole. Throws a `CliError`. `requireNext` throws if no further request
   * is allowed. If a later request cannot connect, the failure has the kind `response`, because the service
   * has answered an earlier request. With `isRepeated`, the failure keeps the kind `not-sent`, because the
   * caller then retries the request.
   */
  async receive<T>(
    send: SendPartRequest,
    reader: AnswerPartReader<T>,
    { requireNext, isRepeated = false }: { requireNext?(): void; isRepeated?: boolean } = {},
  ): Promise<T> {
    for (;;) {
      const isFirst = !this.isBegun
      try {
        if (this.isBegun) requireNext?.()
        const end = await send(this.#body, async (response) => {
          const part = await reader.read(response)
          this.#add(part)
          return this.isWhole ? { value: await reader.finish(response, this) } : undefined
        })
        if (end) return end.value
      } catch (error) {
        throw isFirst ? error : this.#explain(error, isRepeated)
      }
    }
  }

  #add({ summary, hasContent, ...part }: AnswerPartOutcome): void {
    const { end: earlier } = this
    const { continuationToken: token } = summary
    const isNew = token !== undefined && !this.#sentTokens.has(token)
    const isEmpty = this.isBegun && !hasContent && !isNew
    const usage: Record<string, number | null> = {}
    addCountsToSums(usage, readTokenUsage(earlier.summary), 0)
    addCountsToSums(usage, readTokenUsage(summary), this.#parts)
    this.end = {
      // A spread would make V8 keep a hidden class for each answer, which takes memory in a long batch.
      summary: Object.assign({}, summary, usage),
      otherContent: new Set([...earlier.otherContent, ...part.otherContent]),
    }
    this.#parts++
    this.isWhole = !isEmpty && !needsContinuation(summary)
    if (this.isWhole) return
    if (isEmpty) {
      const end = describeCutAnswer({ summary }) ?? 'it ends here'
      throw incomplete(`the continuation has neither text nor a new token; ${end}`)
    }
    // A repeated token would request an earlier part of the answer again.
    if (!isNew) throw incomplete('the service sent CONTINUATION without a new token for the next part')
    if (this.#parts === maxRequests)
      throw incomplete(`the service announces another part even after ${maxRequests} requests`)
    this.#sentTokens.add(token)
    this.#body = addToken(this.#body, token)
  }

  /** Adds to a failure that the service answered an earlier request. */
  #explain(error: unknown, isRepeated: boolean): unknown {
    if (!(error instanceof CliError) || this.isWhole) return error
    const { kind, message } = error
    const why =
      kind === 'file' || kind === 'stopped' ? message : `the answer could not be continued: ${message}`
    const failure = error.with({}, why)
    return isRepeated
      ? failure.with({ sent: getSentAfterAnswer(failure) })
      : toFailureAfterAnsweredRequest(failure)
  }
}

const getSentAfterAnswer = ({ details: { sent } }: CliError) => (sent === 'unknown' ? sent : 'yes')

/**
 * Converts the failure of a request that followed an answered request, because "nothing was sent" would be
 * wrong for the whole run.
 */
export function toFailureAfterAnsweredRequest(error: CliError): CliError {
  const sent = getSentAfterAnswer(error)
  if (error.kind !== 'not-sent') return error.with({ sent })
  const { consequence, ...details } = error.details
  return new CliError('response', error.message, { ...details, sent, delivery: 'answered', retry: 'later' })
}

/**
 * Adds a continuation token. Keeps the rest of the body unchanged, because the service rejects a token with
 * another body.
 */
function addToken(body: Uint8Array, token: string): Uint8Array {
  const assignment = createJsonAssignment(['continuationToken'], JSON.stringify(token))
  return Buffer.from(editJson(Buffer.from(body).toString(), [assignment]))
}

export const createDeadlineCheck =
  ({ deadline }: Pick<Context, 'deadline'>) =>
  () => {
    if (!deadline.hasPassed) return
    throw createResponseError('the deadline passed').with({ deadline: true, retry: 'later' })
  }

const incomplete = (why: string) => createResponseError(`the answer is not complete: ${why}`)
