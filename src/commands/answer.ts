import { createAnswerPrinter } from '../terminal/answer-printer.ts'
import type { Output } from '../terminal/output.ts'
import { createRawPrinter } from '../terminal/raw-printer.ts'
import type { AnswerSummary } from '../wire/answer.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../wire/answer-decoder.ts'
import type { HttpResponse } from '../wire/exchange.ts'

export interface PrintedAnswer {
  summary: AnswerSummary
  /** The whole text, where it was asked for. */
  text: string
  isBlank: boolean
  /** Some of it was not UTF-8, and shows as U+FFFD. */
  isDamaged: boolean
}

/** Prints an answer as it comes: its text, or with `isRaw` what the service sent. */
export async function printAnswer(
  response: HttpResponse,
  output: Output,
  { isRaw, keepsText, cleanups }: { isRaw: boolean; keepsText: boolean; cleanups: Set<() => void> },
): Promise<PrintedAnswer> {
  const printer = createAnswerPrinter(output)
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
    raw(chunk) {
      if (isRaw) raw.add(chunk)
    },
  })
  const write = () => (isRaw ? raw.write() : printer.write())
  cleanups.add(printer.breakLine)
  try {
    for await (const chunk of untilEnded(response, decoder)) {
      try {
        decoder.push(chunk)
      } finally {
        await write()
      }
    }
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
  return { summary: decoder.summary, text: pieces.join(''), isBlank, isDamaged }
}

/** How long a stream that is whole, but has not said that nothing follows, may still be silent. Milliseconds. */
const grace = 500

/** The body up to where the service said that it ends; what goes wrong after that is of no account. */
async function* untilEnded(response: HttpResponse, decoder: AnswerDecoder): AsyncGenerator<Uint8Array> {
  let timer: NodeJS.Timeout | undefined
  try {
    for await (const chunk of response.body) {
      clearTimeout(timer)
      yield chunk
      if (decoder.ended) return
      if (decoder.whole) timer = setTimeout(() => response.close(), grace)
    }
  } catch (error) {
    if (!decoder.whole) throw error
  } finally {
    clearTimeout(timer)
  }
}
