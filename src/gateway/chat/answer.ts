import { type AnswerEnd, cutOf, type Demand, lackOf, printUsage } from '../../content/footer.ts'
import { createPrinter } from '../../content/layout.ts'
import { keepText, rescue } from '../../content/rescue.ts'
import type { AnswerSchema, Mismatch } from '../../content/schema/schema.ts'
import { countPart } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { createAnswerPrinter } from '../../io/answer-printer.ts'
import { type FileOutput, savingPartOnFailure, withSavedPart } from '../../io/file-output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { createPendingSpinner } from '../../io/spinner.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { isErrorEnvelope, notUnderstood } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'

/** An answer that was printed. */
export interface PrintedAnswer extends AnswerEnd {
  /** As much of it as is kept; with a schema the JSON that fits. */
  text: string
}

/** Where an answer goes, and its demands. */
export interface Printing {
  /** Takes the place of stdout. */
  file?: FileOutput | undefined
  /** As Markdown; otherwise the text is printed as it is. */
  isLaidOut?: boolean
  /** All of the text is kept; otherwise nothing of one that is very long. */
  isKept?: boolean
  /** It was asked for as a stream. */
  isStreamed: boolean
  /** With `--raw` an answer needs no text. */
  demand: Demand
  schema?: AnswerSchema | undefined
  /** `--usage` */
  isUsageAsked?: boolean | undefined
}

/**
 * Prints an answer as it comes, or writes its file: its text, or with `--raw` the bytes that the service sent. With a
 * schema the text waits until it is known to fit. If it does not, that is returned, or with `isLast` thrown.
 */
export function printAnswer(
  context: Context,
  response: ReadableResponse,
  printing: Printing,
  isLast = true,
): Promise<PrintedAnswer | Mismatch> {
  const { schema, file, isKept, isUsageAsked } = printing
  const { raw: isRaw } = context.flags
  const text = new AnswerText(isKept || schema ? Infinity : longestUnprinted)
  // What came of an answer that is not printed is kept if the run ends.
  const held = {
    savePart() {
      const { text: kept } = isRaw ? { text: '' } : text.read()
      return file ? file.savePart(kept) : keepText(context, kept)
    },
  }
  return savingPartOnFailure(context, schema ? held : file, async () => {
    const answer = await read(context, response, printing, text)
    if (schema) {
      response.accept()
      const checked = await schema.check(answer.text, cutOf(answer))
      if ('failure' in checked) {
        printUsage(context, answer.summary, isUsageAsked)
        if (isLast) throw checked.failure
        return checked
      }
      answer.text = checked.json
      const printer = createAnswerPrinter(file ?? context.output)
      if (!isRaw) printer.add(answer.text)
      await printer.end()
    }
    await file?.commit()
    return answer
  })
}

/** Reads an answer to its end, and prints it meanwhile. Throws a `CliError` if it is less than what is demanded. */
async function read(
  context: Context,
  response: HttpResponse,
  { file, isLaidOut = false, schema, isStreamed, demand, isUsageAsked }: Printing,
  text: AnswerText,
): Promise<PrintedAnswer> {
  const { flags, cleanups, timers } = context
  const isRaw = flags.raw ?? false
  const waiting = createPendingSpinner(context)
  const output = file ?? waiting.over(context.output)
  const raw = createRawPrinter(output)
  const printer = schema ? undefined : await createPrinter({ ...context, output }, isLaidOut, waiting)
  const shown = isRaw ? raw : printer
  const sink = {
    text(piece: string) {
      text.add(piece)
      if (!isRaw) printer?.add(piece)
    },
    raw: isRaw ? raw.add : undefined,
  }
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink, isStreamed)
  const { summary } = decoder
  const breakLine = () => shown?.breakLine()
  let failure: unknown

  async function take(chunk: Uint8Array): Promise<void> {
    try {
      if (failure) raw.add(chunk)
      else decoder.push(chunk)
    } catch (error) {
      // With --raw, bytes that are not understood are printed too: the service sent them.
      if (!isRaw || !decoder.isVerbatim()) throw error
      failure = error
    }
    await shown?.write()
  }

  const progress = () => (failure ? 'ended' : decoder.progress())
  const takesRest = () => isRaw && decoder.isVerbatim()

  cleanups.add(breakLine)
  waiting.show('waiting for the answer')
  try {
    const { received } = decoder
    const { isAssumed } = await readAnswerBody(response, { progress, received }, { take, takesRest, timers })
    if (failure) throw failure
    decoder.end()
    await shown?.end()
    text.isWhole = true
    const answer = { summary, holds: decoder.holds, ...text.read(), isAssumed }
    const lack = lackOf(answer, isRaw && demand === 'text' ? 'anything' : demand)
    if (lack === undefined) return answer
    printUsage(context, summary, isUsageAsked)
    throw notUnderstood(lack)
  } catch (error) {
    if (!text.isWhole) countPart(context.summary, summary)
    // Nothing else has the answer if stdout does not take it.
    if (!file && error instanceof CliError && error.kind === 'file') {
      const part = keepText(context, text.read().text || Buffer.from(decoder.unread()).toString())
      throw withSavedPart(error, part)
    }
    await shown?.write()
    breakLine()
    // A whole answer with nothing in it has nothing to keep.
    const isNothing = isRaw || (text.isWhole && decoder.holds.size === 0)
    throw isNothing ? error : keepUnread(context, error, decoder.unread())
  } finally {
    waiting.stop()
    cleanups.delete(breakLine)
  }
}

/** Keeps an answer that was not understood, or has no text: it was paid for. An error of the service's is not an answer. */
function keepUnread(context: Context, error: unknown, bytes: Uint8Array): unknown {
  if (!(error instanceof CliError) || error.kind !== 'response') return error
  const start = Buffer.from(bytes.subarray(0, longestBlock)).toString().trimStart()
  const { isCutOff, body } = error.details
  // An error in a stream says whether it broke off an answer.
  if (isCutOff !== undefined || isErrorEnvelope(body) || start === '' || start[0] === '<') return error
  return rescue(context, error, bytes, /^[[{]/.test(start) ? 'json' : 'txt')
}

/**
 * So many characters of a text are put together outside of V8's heap: a string for each word of a long answer makes the
 * heap's young part grow, by 20 MiB for 500,000 of them. In a form that keeps half a character.
 */
const longestBlock = 16384

/** An answer's text, as far as it came. */
class AnswerText {
  /** All of it came. */
  isWhole = false
  readonly #longest: number
  #blocks: Buffer[] = []
  #last = ''
  #length = 0
  #isBlank = true
  #isDamaged = false

  /** Nothing is kept of one that is longer than so many characters. */
  constructor(longest: number) {
    this.#longest = longest
  }

  add(text: string): void {
    this.#length += text.length
    if (this.#length <= this.#longest) this.#last += text
    else [this.#blocks, this.#last] = [[], '']
    if (this.#last.length > longestBlock) {
      this.#blocks.push(Buffer.from(this.#last, 'utf16le'))
      this.#last = ''
    }
    this.#isBlank &&= text.trim() === ''
    this.#isDamaged ||= text.includes('\ufffd')
  }

  read(): { text: string; isBlank: boolean; isDamaged: boolean } {
    const texts = this.#blocks.map((block) => block.toString('utf16le'))
    return { text: texts.join('') + this.#last, isBlank: this.#isBlank, isDamaged: this.#isDamaged }
  }
}

/** So many characters of a text are kept for the case that stdout takes no more of it. */
const longestUnprinted = 2 ** 22
