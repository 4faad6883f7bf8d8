import { describeCutAnswer, describeUnusableAnswer } from '../../content/answer-checks.ts'
import { AnswerWriter, saveReceivedAnswer } from '../../content/saved-answer.ts'
import type { AnswerSchema } from '../../content/schema/schema.ts'
import { addAnswerSummaryToReport, readTokenUsage } from '../../content/tokens.ts'
import { printUsageLine, printWarningsAndUsageLine } from '../../content/usage-line.ts'
import type { Context } from '../../context.ts'
import { joinFailures, OutputClosedError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { createAnswerPrinter } from '../../io/answer-printer.ts'
import type { FileOutput } from '../../io/file-output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import type { SavedData } from '../../io/saved-data.ts'
import { createSpinner } from '../../io/spinner.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'
import type { AnswerPartOutcome, ContinuedAnswer } from '../continued-answer.ts'

export interface AnswerPrintOptions {
  file?: FileOutput | undefined
  isMarkdown?: boolean
  isStreamed?: boolean
  failOnCut?: boolean
  schema?: AnswerSchema | undefined
  showsUsage?: boolean | undefined
}

export type AnswerOutput = Awaited<ReturnType<typeof openAnswerOutput>>

/**
 * Opens the output for an answer of one or more parts: stdout or a file. The output prints the text, or with
 * `--raw` the received bytes. With a schema, the output prints the text only after the schema's check.
 */
export async function openAnswerOutput(context: Context, printing: AnswerPrintOptions) {
  const { file, isMarkdown = false, schema, isStreamed = false, failOnCut, showsUsage } = printing
  const { flags, cleanups, host } = context
  const isRaw = flags.raw ?? false
  const waiting = createSpinner(context)
  const output = file ?? waiting.wrapOutput(context.output)
  const raw = createRawPrinter(output)
  const printer = await createAnswerPrinter({ ...context, output }, { isMarkdown, waiting })
  const shown = isRaw ? raw : printer
  const text = new AnswerText()
  let matchingJson: string | undefined
  let received: AnswerDecoder | undefined
  let unreported: AnswerSummary | undefined
  /**
   * Decoded text that is not printed yet. Streamed text is printed as it arrives. The text of a whole body
   * waits until a later part is streamed or the answer ends. So stdout is still empty if the request for the
   * next part fails.
   */
  let unprinted: string[] = []
  /** JSON with content that parley does not print, such as images. */
  const unprintedJson: string[] = []
  let hasOutput = false
  const writer = new AnswerWriter(context, 'txt')
  const breakLine = () => !file && shown.breakLine()
  cleanups.add(breakLine)

  const sink = {
    text(piece: string) {
      if (piece === '') return
      text.add(piece)
      if (!isRaw && !schema) unprinted.push(piece)
    },
    raw: isRaw ? addRaw : undefined,
    unprinted: (json: string) => !isRaw && unprintedJson.push(json),
  }

  function print(): Promise<void> {
    const pieces = unprinted
    unprinted = []
    return writer.attempt(async () => {
      for (const piece of pieces) printer.add(piece)
      hasOutput ||= pieces.length > 0
      await shown.write()
      if (isRaw) await output.flush()
    })
  }

  function addRaw(data: Uint8Array | string): void {
    hasOutput = true
    writer.queue(data)
    if (!writer.failure) raw.add(data)
  }

  function saveText(): SavedData | undefined {
    // Text that went to stdout, a pipe or a device has arrived there, so only the unprinted text is saved.
    const isPrinted = !file || file.isDirect
    const content = isPrinted && !writer.failure && !schema ? unprinted.join('') : text.read()
    return saveReceivedAnswer(context, content, { file })
  }

  /** Saves the unprinted content of an answer with text, because the user may have paid for it. */
  function saveUnprinted(): SavedData | undefined {
    const saved = saveReceivedAnswer(context, unprintedJson.splice(0).join('\n'), { extension: 'json' })
    if (saved?.name !== undefined) context.reportData.savedFiles.push(saved.name)
    return saved
  }

  function saveUndecoded(): SavedData | undefined {
    return saveReceivedAnswer(context, received?.unread() ?? '', { file })
  }

  return {
    /** True after the first output, when the cursor may be inside a line that a spinner would erase. */
    hasOutput: () => hasOutput,

    async read(response: HttpResponse): Promise<AnswerPartOutcome> {
      const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink, isStreamed)
      const { summary } = decoder
      received = decoder
      unreported = summary

      async function onChunk(chunk: Uint8Array): Promise<void> {
        const count = unprinted.length
        decoder.push(chunk)
        if (isRaw || unprinted.length > count) await print()
      }

      if (!hasOutput) waiting.show('waiting for the answer')
      try {
        const outcome = await readAnswerBody(response, decoder, { onChunk, timers: host.timers })
        if (hasOutput || file) await print()
        if (writer.failure) throw writer.failure
        addAnswerSummaryToReport(context.reportData, summary)
        unreported = undefined
        return outcome
      } catch (error) {
        // If parley has printed nothing before the failure, it saves the text and prints nothing.
        const isBegun = hasOutput || isStreamed || isRaw
        if (isBegun && !(error instanceof OutputClosedError)) await print()
        breakLine()
        throw writer.failure ? joinFailures(writer.failure, error) : error
      } finally {
        waiting.stop()
      }
    },

    /** Throws a `CliError` if the answer is unusable or does not match the schema. */
    async finish(response: ReadableResponse, { end }: Pick<ContinuedAnswer, 'end'>): Promise<void> {
      const missing = describeUnusableAnswer(end, { isBlank: text.isBlank, isRaw, failOnCut })
      if (schema && missing === undefined) {
        response.accept()
        matchingJson = await schema.check(text.read(), describeCutAnswer(end)).catch((error: unknown) => {
          printUsageLine(context, end.summary, showsUsage)
          const saved = saveUnprinted()
          if (saved)
            context.messages.warn(`the answer also has content that is not text: its JSON ${saved.outcome}`)
          throw error
        })
        unprinted.push(matchingJson)
      }
      if (text.isBlank) unprinted = []
      await print()
      await writer.attempt(() => shown.end())
      if (writer.failure) throw writer.failure
      if (missing !== undefined) {
        printUsageLine(context, end.summary, showsUsage)
        throw createResponseError(missing)
      }
      await file?.commit()
      const saved = saveUnprinted()
      printWarningsAndUsageLine(context, end, showsUsage, !isRaw, saved)
    },

    /** Returns the text of the answer, or with a schema the matching JSON. */
    text: () => matchingJson ?? text.read(),

    /**
     * Saves the received data that was not printed, and reports the usage of a cut part. Must be synchronous,
     * because signal handlers call it.
     */
    save() {
      if (unreported && readTokenUsage(unreported)) addAnswerSummaryToReport(context.reportData, unreported)
      unreported = undefined
      return isRaw ? [file?.savePart(), writer.part] : [saveText(), saveUndecoded() ?? saveUnprinted()]
    },

    close(): void {
      breakLine()
      cleanups.delete(breakLine)
    },
  }
}

/**
 * Number of UTF-16 units after which text moves to a buffer outside of V8's heap. 500,000 small strings would
 * make V8's young generation 20 MiB larger.
 */
const maxBlockLength = 16384

class AnswerText {
  isBlank = true
  #blocks: { bytes: Buffer; encoding: BufferEncoding }[] = []
  #last = ''

  add(text: string): void {
    this.#last += text
    if (this.#last.length > maxBlockLength) {
      // UTF-8 needs half the memory for most texts, but would replace half of a surrogate pair.
      const encoding = this.#last.isWellFormed() ? 'utf8' : 'utf16le'
      this.#blocks.push({ bytes: Buffer.from(this.#last, encoding), encoding })
      this.#last = ''
    }
    this.isBlank &&= text.trim() === ''
  }

  read(): string {
    return this.#blocks.map(({ bytes, encoding }) => bytes.toString(encoding)).join('') + this.#last
  }
}
