import { schedule, type Timers } from '../timers.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import type { AnswerDecoder } from '../wire/gateway/answer-decoder.ts'

/** Who reads an answer's body. */
export interface BodyConsumer {
  /** Gets each piece of it, for the decoder too, before the decoder is asked how far the answer has come. */
  onChunk(chunk: Uint8Array): void | Promise<void>
  /**
   * Whether it takes what follows the answer's end, for as long as `longestRest`, so that the connection can carry the next
   * request. Otherwise the connection is closed.
   */
  readsRest(): boolean
  timers: Timers
}

/** How long a stream that may be whole must be silent until it is taken as whole. Milliseconds. */
const maxSilenceMs = 15_000

/** Milliseconds. */
const maxRestMs = 1000

/**
 * Reads a body as far as the service says that the answer goes, which `decoder` knows; what fails after that is ignored.
 * Returns whether the service did not end the stream: then it is taken as whole, because nothing more came.
 */
export async function readAnswerBody(
  response: HttpResponse,
  decoder: Pick<AnswerDecoder, 'progress' | 'contentCount'>,
  { onChunk, readsRest, timers }: BodyConsumer,
): Promise<{ isAssumed: boolean }> {
  let isFinished = false
  let isTaking = false
  let isAssumed = false
  /** How long nothing of the answer has come, while it was waited for: comments are silence too. Milliseconds. */
  let silence = 0
  let stopTimer = () => {}
  function assumeEnd(): void {
    isAssumed = true
    response.close()
  }
  let waitingSince = timers.now()
  try {
    for await (const chunk of response.body) {
      silence += timers.now() - waitingSince
      if (!isFinished) stopTimer()
      const count = decoder.contentCount()
      isTaking = true
      await onChunk(chunk)
      isTaking = false
      const progress = isFinished ? undefined : decoder.progress()
      if (progress === 'ended') {
        isFinished = true
        if (!readsRest()) break
        stopTimer = schedule(timers, maxRestMs, response.close)
      } else if (progress) {
        const isSettled = progress === 'settled'
        if (!isSettled || decoder.contentCount() > count) silence = 0
        if (silence >= maxSilenceMs) assumeEnd()
        else if (isSettled) stopTimer = schedule(timers, maxSilenceMs - silence, assumeEnd)
      }
      if (isAssumed) break
      waitingSince = timers.now()
    }
  } catch (error) {
    if (!isFinished || isTaking) throw error
  } finally {
    stopTimer()
  }
  return { isAssumed }
}
