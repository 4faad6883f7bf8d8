import { callAfter, type Timers } from '../client/timer.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../io/answer-printer.ts'
import type { Output } from '../io/output.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../wire/model/answer-decoder.ts'
import type { AnswerSummary } from '../wire/model/answer-piece.ts'

export interface PrintedAnswer {
  summary: AnswerSummary
  /** The whole text, where it was asked for. */
  text: string
  isBlank: boolean
  /** Some of it was not UTF-8, and shows as U+FFFD. */
  isDamaged: boolean
  /** The service did not end the stream; it is taken as whole, for nothing more came. */
  isAssumed: boolean
}

export interface PrintOptions {
  isRaw: boolean
  /** Prints the text; by default as it is. */
  printer?: AnswerPrinter | undefined
  keepsText: boolean
  cleanups: Set<() => void>
  timers: Timers
}

/** Prints an answer as it comes: its text, or with `isRaw` what the service sent. */
export async function printAnswer(
  response: HttpResponse,
  output: Output,
  { isRaw, printer = createAnswerPrinter(output), keepsText, cleanups, timers }: PrintOptions,
): Promise<PrintedAnswer> {
  const raw = createRawPrinter(output)
  const pieces: string[] = []
  let isBlank = true
  let isDamaged = false
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', {
    text(text) {
      if (keepsText) pieces.push(text)
      isBlank &&= text.trim() === ''
      isDamaged ||= text.includes('\ufffd')
      if (!isRaw) printer.add(text)
    },
    raw: isRaw ? raw.add : undefined,
  })
  const reading = readUntilEnded(response, decoder, { takesRest: isRaw, timers })
  const write = () => (isRaw ? raw.write() : printer.write())
  cleanups.add(printer.breakLine)
  try {
    let failure: unknown
    for await (const chunk of reading.chunks()) {
      try {
        if (failure) raw.add(chunk)
        else decoder.push(chunk)
      } catch (error) {
        // What is not understood is still what the service sent.
        if (!isRaw || !decoder.isVerbatim) throw error
        failure = error
        reading.finish()
      } finally {
        await write()
      }
    }
    if (failure) throw failure
    decoder.end()
    if (isRaw) await raw.end()
    else await printer.end()
  } catch (error) {
    await write()
    printer.breakLine()
    throw error
  } finally {
    cleanups.delete(printer.breakLine)
  }
  const { isAssumed } = reading
  return { summary: decoder.summary, text: pieces.join(''), isBlank, isDamaged, isAssumed }
}

/** How long a stream that may be whole has to be silent until it is taken as that. Milliseconds. */
const longestSilence = 15_000

/** How long what follows an answer's end is read, where all bytes are asked for. Milliseconds. */
const longestRest = 1000

/** Reads a body up to where the service said that it ends; what goes wrong after that is of no account. */
function readUntilEnded(
  response: HttpResponse,
  decoder: AnswerDecoder,
  { takesRest, timers }: Pick<PrintOptions, 'timers'> & { takesRest: boolean },
) {
  let isAssumed = false
  let isFinished = false
  let stopTimer: (() => void) | undefined

  function stop(): void {
    stopTimer?.()
    stopTimer = undefined
  }

  /** How long nothing of the answer has come, while it was waited for: comments are silence too. Milliseconds. */
  let silence = 0

  function assumeEnd(): void {
    isAssumed = true
    response.close()
  }

  function watchSilence(): void {
    if (silence >= longestSilence) assumeEnd()
    else if (decoder.isSettled) stopTimer = callAfter(timers, longestSilence - silence, assumeEnd)
  }

  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      let waitingSince = timers.now()
      for await (const chunk of response.body) {
        const { received } = decoder
        const wasFinished = isFinished
        if (!isFinished) stop()
        silence += timers.now() - waitingSince
        yield chunk
        isFinished ||= decoder.ended
        if (isFinished && !(takesRest && decoder.isVerbatim)) return
        if (decoder.received > received || !decoder.isSettled) silence = 0
        if (!isFinished) watchSilence()
        else if (!wasFinished) stopTimer = callAfter(timers, longestRest, response.close)
        if (isAssumed) return
        waitingSince = timers.now()
      }
    } catch (error) {
      if (!isFinished) throw error
    } finally {
      stop()
    }
  }

  return {
    chunks,
    /** Only what is there already is of interest now. */
    finish() {
      isFinished = true
    },
    get isAssumed() {
      return isAssumed
    },
  }
}
