import { callAfter, type Timers } from '../../timers.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import type { AnswerDecoder } from '../../wire/gateway/answer-decoder.ts'

/** An answer's body, read as far as the service said that it goes. */
export interface AnswerBody {
  chunks(): AsyncGenerator<Uint8Array>
  /** From now on only the bytes that have already come are wanted. */
  finish(): void
  /** The service did not end the stream; it is taken as whole, because nothing more came. */
  readonly isAssumed: boolean
}

export interface ReadOptions {
  /** Also reads what follows the end of the answer. */
  takesRest: boolean
  timers: Timers
}

/** How long a stream that may be whole must be silent until it is taken as whole. Milliseconds. */
const longestSilence = 15_000

/** How long the bytes after an answer's end are read, where all bytes are wanted. Milliseconds. */
const longestRest = 1000

/** Reads a body up to the answer's end, which `decoder` knows; what fails after that is ignored. */
export function createAnswerBody(
  response: HttpResponse,
  decoder: AnswerDecoder,
  { takesRest, timers }: ReadOptions,
): AnswerBody {
  let isFinished = false
  const limit = createLimit(response, decoder, timers)

  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      limit.startWait()
      for await (const chunk of response.body) {
        const { received } = decoder
        const wasFinished = isFinished
        limit.endWait()
        if (!isFinished) limit.stop()
        yield chunk
        isFinished ||= decoder.progress === 'ended'
        if (isFinished && !(takesRest && decoder.isVerbatim)) return
        if (!isFinished) limit.watchSilence(decoder.received > received)
        else if (!wasFinished) limit.watchRest()
        if (limit.isAssumed()) return
        limit.startWait()
      }
    } catch (error) {
      if (!isFinished) throw error
    } finally {
      limit.stop()
    }
  }

  return {
    chunks,
    finish() {
      isFinished = true
    },
    get isAssumed() {
      return limit.isAssumed()
    },
  }
}

/** Closes a body that stays open, where the answer may be whole or is. */
function createLimit(response: HttpResponse, decoder: AnswerDecoder, timers: Timers) {
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
      const isSettled = decoder.progress === 'settled'
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
