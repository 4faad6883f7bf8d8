import { type AnswerReport, cutOf, printUsage } from '../../content/footer.ts'
import type { AnswerSchema, Misfit } from '../../content/schema/schema.ts'
import type { Context } from '../../context.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../../io/answer-printer.ts'
import type { Output } from '../../io/output.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { type PrintedAnswer, printAnswer } from './printed-answer.ts'

export interface FittingOptions {
  schema: AnswerSchema
  /** An answer that does not fit is a failure. */
  isLast: boolean
  /** Where the JSON goes. */
  output: Output
  /** Keeps the text of an answer that is not whole, or does not fit. */
  keep(text: string): Promise<void>
  /** Adds what is known of the run, and throws where an answer that is cut is a failure. */
  toReport(printed: PrintedAnswer): AnswerReport
  requireWhole(report: AnswerReport): void
}

/** Prints an answer's JSON once it is known that it fits. With `--raw` its bytes are printed as they come. */
export async function printFitting(
  context: Context,
  response: HttpResponse,
  { schema, isLast, output, keep, toReport, requireWhole }: FittingOptions,
): Promise<(PrintedAnswer & AnswerReport) | Misfit> {
  const { flags, cleanups, timers } = context
  const isRaw = flags.raw ?? false
  const held = createHeldPrinter()
  let isPrinted = false
  try {
    const how = { isRaw, printer: held, keepsText: true, cleanups, timers }
    const printed = await printAnswer(response, output, how)
    const report = toReport(printed)
    requireWhole(report)
    const verdict = await schema.check(printed.text, cutOf(report))
    if ('failure' in verdict) {
      printUsage(context, report)
      if (isLast) throw verdict.failure
      return verdict
    }
    isPrinted = true
    if (!isRaw) await printText(output, verdict.json)
    return { ...report, ...printed, text: verdict.json }
  } catch (error) {
    if (!isPrinted && held.text() !== '') await keep(held.text())
    throw error
  }
}

async function printText(output: Output, text: string): Promise<void> {
  const printer = createAnswerPrinter(output)
  printer.add(text)
  await printer.end()
}

function createHeldPrinter(): AnswerPrinter & { text(): string } {
  const pieces: string[] = []
  return {
    add: (text) => void pieces.push(text),
    async write() {},
    async end() {},
    breakLine() {},
    text: () => pieces.join(''),
  }
}
