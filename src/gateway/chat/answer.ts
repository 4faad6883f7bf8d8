import { type AnswerEnd, cutOf, type Demand, lackOf, printUsage } from '../../content/footer.ts'
import { createLayout } from '../../content/layout.ts'
import { keepText, rescue } from '../../content/rescue.ts'
import type { AnswerSchema, Mismatch } from '../../content/schema/schema.ts'
import { countPart } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../../io/answer-printer.ts'
import type { FileOutput } from '../../io/file-output.ts'
import { type Keeper, keepingPart } from '../../io/kept-part.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { createWaiting, type Waiting } from '../../io/spinner.ts'
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
  file: FileOutput | undefined
  /** Whether stdout takes no more. */
  isUnprinted?(): boolean
  /** As Markdown; otherwise the text is printed as it is. */
  isLaidOut: boolean
  /** So many characters of the text are kept; nothing of a longer one. */
  longestKept: number
  /** It was asked for as a stream. */
  isStreamed: boolean
  /** With `--raw` an answer needs no text. */
  demand: Demand
  schema: AnswerSchema | undefined
  /** `--usage` */
  isUsageAsked: boolean | undefined
}

/**
 * Prints an answer as it comes, or writes its file: its text, or with `--raw` the bytes that the service sent. With a
 * schema the text waits until it is known to fit. If it does not, that is returned, or with `isLast` thrown.
 */
export const printAnswer = (
  context: Context,
  response: ReadableResponse,
  printing: Printing & { isLast: boolean },
): Promise<PrintedAnswer | Mismatch> => {
  const { schema, file, isUnprinted = () => false, longestKept, isUsageAsked, isLast } = printing
  const held = schema && createHeldAnswer(context, file)
  const text = watchText(schema ? Infinity : longestKept)
  const unprinted: Keeper = {
    keep() {
      const { text: kept } = text.read()
      return isUnprinted() && kept !== '' ? keepText(context, kept) : undefined
    },
  }
  return keepingPart(context, held ?? file ?? unprinted, async () => {
    let answer = await read(context, response, { ...printing, held, text })
    if (schema) {
      response.accept()
      const checked = await schema.check(answer.text, cutOf(answer))
      if ('failure' in checked) {
        printUsage(context, answer.summary, isUsageAsked)
        if (isLast) throw checked.failure
        return checked
      }
      answer = { ...answer, text: checked.json }
      held?.release()
      const printer = createAnswerPrinter(file ?? context.output)
      if (!context.flags.raw) printer.add(checked.json)
      await printer.end()
    }
    await file?.commit()
    return answer
  })
}

/** An answer that is not printed before it was checked: until then, what came of it is kept if the run ends. */
interface HeldAnswer extends AnswerPrinter, Keeper {
  /** It is printed now. */
  release(): void
}

function createHeldAnswer(context: Context, file: FileOutput | undefined): HeldAnswer {
  let pieces: string[] = []
  let isWhole = false
  return {
    add: (text) => void pieces.push(text),
    async write() {},
    async end() {
      isWhole = true
    },
    breakLine: () => false,
    get isWhole() {
      return isWhole
    },
    keep() {
      const text = pieces.join('')
      return file ? file.keep(text) : keepText(context, text)
    },
    release() {
      pieces = []
      isWhole = false
    },
  }
}

interface AnswerReading extends Printing {
  /** Takes the text in place of stdout. */
  held: HeldAnswer | undefined
  text: WatchedText
}

/** Reads an answer to its end, and prints it meanwhile. Throws a `CliError` if it is less than what is demanded. */
async function read(
  context: Context,
  response: HttpResponse,
  { file, isLaidOut, held, text, isStreamed, demand, isUsageAsked }: AnswerReading,
): Promise<PrintedAnswer> {
  const { flags, cleanups, timers } = context
  const isRaw = flags.raw ?? false
  const waiting = createWaiting(context, context.start)
  const output = file ?? waiting.over(context.output)
  const printer = held ?? (await createPrinter({ ...context, output }, isLaidOut, waiting))
  const raw = createRawPrinter(output)
  const sink = {
    text(piece: string) {
      text.add(piece)
      if (!isRaw) printer.add(piece)
    },
    raw: isRaw ? raw.add : undefined,
  }
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink, isStreamed)
  const { summary } = decoder
  const shown = isRaw ? raw : printer
  let isWhole = false
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
    await shown.write()
  }

  const progress = () => (failure ? 'ended' : decoder.progress())
  const rest = () => (isRaw && decoder.isVerbatim() ? 'taken' : 'left')

  cleanups.add(shown.breakLine)
  waiting.show('waiting for the answer')
  try {
    const { received } = decoder
    const { isAssumed } = await readAnswerBody(response, { progress, received }, { take, rest, timers })
    if (failure) throw failure
    decoder.end()
    await shown.end()
    const answer = { summary, holds: decoder.holds, ...text.read(), isAssumed }
    isWhole = true
    const lack = lackOf(answer, isRaw && demand === 'text' ? 'anything' : demand)
    if (lack === undefined) return answer
    printUsage(context, summary, isUsageAsked)
    throw notUnderstood(lack)
  } catch (error) {
    if (!isWhole) countPart(context.summary, summary)
    await shown.write()
    shown.breakLine()
    // A whole answer with nothing in it has nothing to keep.
    const isNothing = isRaw || (isWhole && decoder.holds.size === 0)
    throw isNothing ? error : await keepUnread(context, error, decoder.unread())
  } finally {
    waiting.stop()
    cleanups.delete(shown.breakLine)
  }
}

const createPrinter = (context: Context, isLaidOut: boolean, waiting: Waiting) =>
  isLaidOut ? createLayout(context, waiting) : createAnswerPrinter(context.output)

/** Keeps an answer that was not understood, or has no text: it was paid for. An error of the service's is not an answer. */
async function keepUnread(context: Context, error: unknown, bytes: Uint8Array): Promise<unknown> {
  if (!(error instanceof CliError) || error.kind !== 'response') return error
  const start = Buffer.from(bytes.subarray(0, longestBlock)).toString().trimStart()
  const { brokeOff, body } = error.details
  // An error in a stream says whether it broke off an answer.
  if (brokeOff !== undefined || isErrorEnvelope(body) || start === '' || start[0] === '<') return error
  return rescue(context, error, {
    bytes,
    extension: /^[[{]/.test(start) ? 'json' : 'txt',
    what: 'the answer',
  })
}

/**
 * So many characters of a text are put together outside of V8's heap: a string for each word of a long answer makes the
 * heap's young part grow, by 20 MiB for 500,000 of them. In a form that keeps half a character.
 */
const longestBlock = 16384

type WatchedText = ReturnType<typeof watchText>

function watchText(longestKept: number) {
  let blocks: Buffer[] = []
  let last = ''
  let length = 0
  let isBlank = true
  let isDamaged = false
  return {
    add(text: string) {
      length += text.length
      if (length <= longestKept) last += text
      else [blocks, last] = [[], '']
      if (last.length > longestBlock) {
        blocks.push(Buffer.from(last, 'utf16le'))
        last = ''
      }
      isBlank &&= text.trim() === ''
      isDamaged ||= text.includes('\ufffd')
    },
    read() {
      const texts = blocks.map((block) => block.toString('utf16le'))
      return { text: texts.join('') + last, isBlank, isDamaged }
    },
  }
}
