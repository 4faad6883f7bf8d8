import { CliError, toFailure } from '../errors.ts'
import { schedule, type Timers } from '../timers.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import type { AnswerDecoder } from '../wire/gateway/answer-decoder.ts'
import type { AnswerPartOutcome } from './continued-answer.ts'

const maxSilenceMs = 15_000

/** If the body ends within this time after the answer, the connection can serve another request. */
const maxRestMs = 1000

/**
 * Reads a body up to the end of the answer, which `decoder` detects, and then for up to `maxRestMs`. Ignores
 * failures after this end. If the service sends no end, parley assumes the end after a silence of
 * `maxSilenceMs`. `onChunk` passes a chunk to the decoder. Also decodes the received part of a cut body before
 * it throws the failure, and adds an error in this part to the failure.
 */
export async function readAnswerBody(
  response: HttpResponse,
  decoder: AnswerDecoder,
  { onChunk = decoder.push, timers }: { onChunk?(chunk: Uint8Array): void | Promise<void>; timers: Timers },
): Promise<AnswerPartOutcome> {
  const { summary, otherContent } = decoder
  let failure: unknown
  let isFinished = false
  /** Milliseconds since the last content of the answer. Comments of the stream are not content. */
  let silenceMs = 0
  let stopTimer = () => {}
  function assumeEnd(): void {
    summary.isEndAssumed = true
    response.close()
  }
  let waitingSince = timers.now()
  try {
    for await (const chunk of response.body) {
      silenceMs += timers.now() - waitingSince
      if (!isFinished) stopTimer()
      const count = decoder.contentCount()
      await onChunk(chunk)
      const progress = isFinished ? undefined : decoder.progress()
      if (progress === 'ended') {
        isFinished = true
        stopTimer = schedule(timers, maxRestMs, response.close)
      } else if (progress) {
        const isSettled = progress === 'settled'
        if (!isSettled || decoder.contentCount() > count) silenceMs = 0
        if (silenceMs >= maxSilenceMs) assumeEnd()
        else if (isSettled) stopTimer = schedule(timers, maxSilenceMs - silenceMs, assumeEnd)
      }
      if (summary.isEndAssumed) break
      waitingSince = timers.now()
    }
  } catch (error) {
    if (!isFinished) failure = error
  }
  stopTimer()
  try {
    decoder.end()
  } catch (error) {
    const { errorIn, serviceMessage, body } = toFailure(error).details
    if (failure instanceof CliError && errorIn) failure = failure.with({ serviceMessage, body })
    else failure ??= error
  }
  if (failure !== undefined) throw failure
  return { summary, hasContent: decoder.hasContent(), otherContent }
}
