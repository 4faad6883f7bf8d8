import { type AnswerEnd, cutOf, type Demand, lackOf, printUsage } from '../../content/footer.ts'
import { createPrinter } from '../../content/layout.ts'
import { keepText, rescue } from '../../content/rescue.ts'
import type { AnswerSchema, Mismatch } from '../../content/schema/schema.ts'
import { countPart, recordAnswer } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { createAnswerPrinter } from '../../io/answer-printer.ts'
import { type FileOutput, savePartOnSignal, withSavedPart } from '../../io/file-output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { createPendingSpinner } from '../../io/spinner.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary, OtherContent } from '../../wire/gateway/answer-forms.ts'
import { isErrorEnvelope, notUnderstoodError } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'
import type { AnswerPart } from '../long-answer.ts'

/** An answer that was printed. */
export interface PrintedAnswer extends AnswerEnd {
  /** As much of it as is kept; with a schema the JSON that fits. */
  text: string
}

/** Where an answer goes, and its demands. */
export interface PrintOptions {
  /** Takes the place of stdout. */
  file?: FileOutput | undefined
  /** As Markdown; otherwise the text is printed as it is. */
  isMarkdown?: boolean
  /** All of the text is kept; otherwise nothing of one that is very long. */
  keepsText?: boolean
  /** It was asked for as a stream. */
  isStreamed: boolean
  /** With `--raw` an answer needs no text. */
  demand: Demand
  schema?: AnswerSchema | undefined
  /** `--usage` */
  showsUsage?: boolean | undefined
}

/** Prints one answer, which may have several parts. */
export type AnswerPrinting = Awaited<ReturnType<typeof openAnswerPrinting>>

/**
 * Prepares to print an answer as it comes, or to write its file: its text, or with `--raw` the bytes that the service sent.
 * With a schema the text waits until it is known to fit. If it does not, `finish` returns that, or with `isLast` throws it.
 */
export async function openAnswerPrinting(context: Context, printing: PrintOptions, isLast = true) {
  const { file, isMarkdown = false, schema, isStreamed, demand, keepsText, showsUsage } = printing
  const { flags, cleanups, timers } = context
  const isRaw = flags.raw ?? false
  const waiting = createPendingSpinner(context)
  const output = file ?? waiting.over(context.output)
  const raw = createRawPrinter(output)
  const printer = schema ? undefined : await createPrinter({ ...context, output }, isMarkdown, waiting)
  const shown = isRaw ? raw : printer
  const text = new AnswerText(keepsText || schema ? Infinity : maxUnprintedLength)
  const otherContent = new Set<OtherContent>()
  let isAssumed = false
  let unread: () => Uint8Array = () => new Uint8Array()
  /** Text that is not printed yet. That of a part waits for the rest, so that stdout stays empty if the rest fails. */
  let unprinted: string[] = []
  let hasOutput = false
  const breakLine = () => shown?.breakLine()
  const saving = savePartOnSignal(context, {
    savePart() {
      if (!file && !schema) return keepText(context, unprinted.join(''))
      const received = schema && !isRaw ? text.read().text : ''
      return file ? file.savePart(received) : keepText(context, received)
    },
  })
  cleanups.add(breakLine)

  const sink = {
    text(piece: string) {
      if (piece === '') return
      text.add(piece)
      if (!isRaw && printer) unprinted.push(piece)
    },
    raw: isRaw
      ? (data: Uint8Array | string) => {
          hasOutput = true
          raw.add(data)
        }
      : undefined,
  }

  async function print(): Promise<void> {
    const pieces = unprinted
    unprinted = []
    for (const piece of pieces) printer?.add(piece)
    hasOutput ||= pieces.length > 0
    await shown?.write()
  }

  /** Adds where the answer is saved that stdout did not take, or that was not understood. */
  function withPlace(error: unknown): unknown {
    // Nothing else has the answer if stdout does not take it.
    if (isUnwritten(error) && !file) {
      const part = keepText(context, text.read().text || Buffer.from(unread()).toString())
      return withSavedPart(error, part)
    }
    breakLine()
    // A whole answer with nothing in it has nothing to keep.
    const isNothing = isRaw || (text.isWhole && otherContent.size === 0)
    return isNothing ? error : saveUnread(context, error, unread())
  }

  return {
    /** Something of the answer was printed, so the cursor may be inside a line. */
    hasOutput: () => hasOutput,

    /** Reads a part to its end, and prints it meanwhile if it comes in pieces. */
    async read(response: HttpResponse): Promise<AnswerPart> {
      const hasEarlier = unprinted.length > 0
      const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink, isStreamed)
      const { summary, contentCount } = decoder
      unread = decoder.unread
      let failure: unknown

      async function onChunk(chunk: Uint8Array): Promise<void> {
        const count = unprinted.length
        try {
          if (failure) raw.add(chunk)
          else decoder.push(chunk)
        } catch (error) {
          // With --raw, bytes that are not understood are printed too: the service sent them.
          if (!isRaw || !decoder.isVerbatim()) throw error
          failure = error
        }
        if (isRaw || unprinted.length > count) await print()
      }

      const progress = () => (failure ? 'ended' : decoder.progress())
      const readsRest = () => isRaw && decoder.isVerbatim()

      // A spinner would erase an unfinished line.
      if (!hasOutput) waiting.show('waiting for the answer')
      try {
        const end = await readAnswerBody(response, { progress, contentCount }, { onChunk, readsRest, timers })
        if (failure) throw failure
        decoder.end()
        if (hasOutput || file) await print()
        recordAnswer(context.summary, summary)
        isAssumed ||= end.isAssumed
        for (const what of decoder.otherContent) otherContent.add(what)
        const hasMore = [...decoder.otherContent].some((what) => what !== 'thoughts')
        return { summary, hasContent: contentCount() > 0 || hasMore }
      } catch (error) {
        countPart(context.summary, summary)
        if (!hasEarlier && !isUnwritten(error)) await print()
        throw withPlace(error)
      } finally {
        waiting.stop()
      }
    },

    /** Ends the text. Throws a `CliError` if the answer is less than what is demanded. */
    async finish(response: ReadableResponse, summary: AnswerSummary): Promise<PrintedAnswer | Mismatch> {
      const answer = { summary, otherContent, ...text.read(), isAssumed }
      try {
        await print()
        await shown?.end()
        text.isWhole = true
        const lack = lackOf(answer, isRaw && demand === 'text' ? 'anything' : demand)
        if (lack !== undefined) {
          printUsage(context, summary, showsUsage)
          throw notUnderstoodError(lack)
        }
      } catch (error) {
        throw withPlace(error)
      }
      if (schema) {
        response.accept()
        const checked = await schema.check(answer.text, cutOf(answer))
        if ('failure' in checked) {
          printUsage(context, summary, showsUsage)
          if (isLast) throw checked.failure
          return checked
        }
        answer.text = checked.json
        const jsonPrinter = createAnswerPrinter(file ?? context.output)
        if (!isRaw) jsonPrinter.add(answer.text)
        await jsonPrinter.end()
      }
      await file?.commit()
      return answer
    },

    /** Saves the received part. Returns the failure with its place. */
    saveAfter(error: unknown): unknown {
      breakLine()
      return saving.saveAfter(error)
    },

    close(): void {
      saving.stop()
      cleanups.delete(breakLine)
    },
  }
}

const isUnwritten = (error: unknown): error is CliError => error instanceof CliError && error.kind === 'file'

/** Keeps an answer that was not understood, or has no text: it was paid for. An error of the service's is not an answer. */
function saveUnread(context: Context, error: unknown, bytes: Uint8Array): unknown {
  if (!(error instanceof CliError) || error.kind !== 'response') return error
  const start = Buffer.from(bytes.subarray(0, maxBlockLength)).toString().trimStart()
  const { isCutOff, body } = error.details
  // An error in a stream says whether it broke off an answer.
  if (isCutOff !== undefined || isErrorEnvelope(body) || start === '' || start[0] === '<') return error
  return rescue(context, error, bytes, /^[[{]/.test(start) ? 'json' : 'txt')
}

/**
 * So many characters of a text are put together outside of V8's heap: a string for each word of a long answer makes the
 * heap's young part grow, by 20 MiB for 500,000 of them. In a form that keeps half a character.
 */
const maxBlockLength = 16384

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
    if (this.#last.length > maxBlockLength) {
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
const maxUnprintedLength = 2 ** 22
