import { type AnswerPrinter, createAnswerPrinter } from '../../io/answer-printer.ts'
import type { Output } from '../../io/output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import type { Timers } from '../../timers.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import type { AnswerSummary } from '../../wire/gateway/answer.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { createAnswerBody } from './answer-body.ts'

export interface PrintedAnswer {
  summary: AnswerSummary
  /** The whole text, with `keepsText`. */
  text: string
  isBlank: boolean
  /** Some bytes were not UTF-8, and are shown as U+FFFD. */
  isDamaged: boolean
  /** As in `AnswerBody`. */
  isAssumed: boolean
}

export interface PrintOptions {
  isRaw: boolean
  /** Prints the text; by default as it is. */
  printer?: AnswerPrinter
  keepsText: boolean
  cleanups: Set<() => void>
  timers: Timers
}

/** Prints an answer as it comes: its text, or with `isRaw` the bytes that the service sent. */
export async function printAnswer(
  response: HttpResponse,
  output: Output,
  { isRaw, printer = createAnswerPrinter(output), keepsText, cleanups, timers }: PrintOptions,
): Promise<PrintedAnswer> {
  const raw = createRawPrinter(output)
  const text = watchText(keepsText)
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', {
    text(piece) {
      text.add(piece)
      if (!isRaw) printer.add(piece)
    },
    raw: isRaw ? raw.add : undefined,
  })
  const body = createAnswerBody(response, decoder, { takesRest: isRaw, timers })
  const shown = isRaw ? raw : printer
  let failure: unknown

  function take(chunk: Uint8Array): void {
    try {
      if (failure) raw.add(chunk)
      else decoder.push(chunk)
    } catch (error) {
      // With --raw, bytes that are not understood are printed too: the service sent them.
      if (!isRaw || !decoder.isVerbatim) throw error
      failure = error
      body.finish()
    }
  }

  cleanups.add(printer.breakLine)
  try {
    for await (const chunk of body.chunks()) {
      take(chunk)
      await shown.write()
    }
    if (failure) throw failure
    decoder.end()
    await shown.end()
  } catch (error) {
    await shown.write()
    printer.breakLine()
    throw error
  } finally {
    cleanups.delete(printer.breakLine)
  }
  return { summary: decoder.summary, ...text.read(), isAssumed: body.isAssumed }
}

function watchText(keepsText: boolean) {
  const pieces: string[] = []
  let isBlank = true
  let isDamaged = false
  return {
    add(text: string) {
      if (keepsText) pieces.push(text)
      isBlank &&= text.trim() === ''
      isDamaged ||= text.includes('\ufffd')
    },
    read: () => ({ text: pieces.join(''), isBlank, isDamaged }),
  }
}
