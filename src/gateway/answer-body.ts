import { callAfter, type Timers } from '../timers.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import type { AnswerDecoder } from '../wire/gateway/answer-decoder.ts'

/** Who reads an answer's body. */
export interface AnswerTaker {
  /** Gets each piece of it, for the decoder too, before the decoder is asked how far the answer has come. */
  take(chunk: Uint8Array): void | Promise<void>
  /**
   * What follows the answer's end, for as long as `longestRest`:
   * - `left`: nothing of it is read, and the connection is closed
   * - `taken`: it is read as the answer is
   * - `skipped`: it is read, so that the connection can carry the next request
   */
  rest(): 'left' | 'taken' | 'skipped'
  timers: Timers
}

/** How long a stream that may be whole must be silent until it is taken as whole. Milliseconds. */
const longestSilence = 15_000

/** Milliseconds. */
const longestRest = 1000

/**
 * Reads a body as far as the service says that the answer goes, which `decoder` knows; what fails after that is ignored.
 * Returns whether the service did not end the stream: then it is taken as whole, because nothing more came.
 */
export async function readAnswerBody(
  response: HttpResponse,
  decoder: Pick<AnswerDecoder, 'progress' | 'received'>,
  { take, rest, timers }: AnswerTaker,
): Promise<{ isAssumed: boolean }> {
  const limit = createLimit(response, decoder, timers)
  let isFinished = false
  let isTaking = false
  try {
    limit.startWait()
    for await (const chunk of response.body) {
      if (isFinished && rest() === 'skipped') continue
      const received = decoder.received()
      const wasFinished = isFinished
      limit.endWait()
      if (!isFinished) limit.stop()
      isTaking = true
      await take(chunk)
      isTaking = false
      isFinished ||= decoder.progress() === 'ended'
      if (isFinished && rest() === 'left') break
      if (!isFinished) limit.watchSilence(decoder.received() > received)
      else if (!wasFinished) limit.watchRest()
      if (limit.isAssumed()) break
      limit.startWait()
    }
  } catch (error) {
    if (!isFinished || isTaking) throw error
  } finally {
    limit.stop()
  }
  return { isAssumed: limit.isAssumed() }
}

/** Closes a body that stays open, once the answer is whole or may be. */
function createLimit(response: HttpResponse, decoder: Pick<AnswerDecoder, 'progress'>, timers: Timers) {
  let isAssumed = false
  let stopTimer: (() => void) | undefined
  let waitingSince = 0
  /** How long nothing of the answer has come, while it was waited for: comments are silence too. Milliseconds. */
  let silence = 0

  function assumeEnd(): void {
    isAssumed = true
    response.close()
  }

  return {
    isAssumed: () => isAssumed,
    startWait() {
      waitingSince = timers.now()
    },
    endWait() {
      silence += timers.now() - waitingSince
    },
    watchSilence(hasText: boolean) {
      const isSettled = decoder.progress() === 'settled'
      if (hasText || !isSettled) silence = 0
      if (silence >= longestSilence) assumeEnd()
      else if (isSettled) stopTimer = callAfter(timers, longestSilence - silence, assumeEnd)
    },
    watchRest() {
      stopTimer = callAfter(timers, longestRest, response.close)
    },
    stop() {
      stopTimer?.()
      stopTimer = undefined
    },
  }
}
