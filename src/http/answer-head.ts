import type { HttpResponse } from '../wire/exchange.ts'
import { readRetryAfter } from './retry-after.ts'

/** What an answer's headers say that a failure shows. */
export interface AnswerHead {
  /** Seconds. */
  retryAfter: number | undefined
  requestId: string | undefined
}

/** `now` is in milliseconds since the epoch. */
export async function readHead(headers: HttpResponse['headers'], now: number): Promise<AnswerHead> {
  return {
    retryAfter: await readRetryAfter(headers, now),
    requestId: idHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== ''),
  }
}

const idHeaders = ['request-id', 'x-request-id', 'x-amzn-requestid', 'x-goog-request-id', 'x-correlation-id']
