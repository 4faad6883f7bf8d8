import { type AnswerReport, printReport, requireUncut } from '../../content/footer.ts'
import type { Prompt } from '../../content/prompt.ts'
import type { AnswerSchema, Misfit, SchemaOptions } from '../../content/schema/schema.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import type { FileOutput } from '../../io/file-output.ts'
import { keepingPart } from '../../io/kept-part.ts'
import { deadlineOf, readSettings } from '../../settings/read-settings.ts'
import type { Settings } from '../../settings/schemas.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { chooseLayout, type Layout } from './layout.ts'
import type { PrintedAnswer } from './printed-answer.ts'
import { buildChatRequest, type ChatRequestOptions, readQuestion } from './request.ts'
import type { Thread } from './thread.ts'
import { readSchema, withSchema } from './wanted-form.ts'

export interface ChatOptions extends ChatRequestOptions, SchemaOptions {
  failOnCut?: boolean
  output?: string
  thread?: string
  usage?: boolean
  markdown?: boolean
}

/** Asks a model and prints its answer. */
export async function ask(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const start = Date.now()
  const settings = await readSettings(context)
  const { values } = settings
  const schema = await readSchema(context, settings, options)
  const layout = schema ? undefined : chooseLayout(context, options, values)
  const question = await readQuestion(context, words, options)
  const { prompt } = question
  const file = await openOutput(context, options.output)
  const thread = await readThread(context, options, { prompt, values })
  const { endpoint, parts } = await buildChatRequest(withSchema(question, schema), thread?.given, {
    options,
    values,
  })

  const caller = createCaller(file ? withoutRaw(context) : context, settings)
  if (await caller.preview(endpoint, parts)) return
  const failOnCut = options.failOnCut ?? values.failOnCut
  const isAsked = options.usage
  const target = { file, layout, keepsText: thread !== undefined, failOnCut, start, isAsked }
  const meanwhile = () => Promise.all([loadPrinter(), layout?.load()])
  const askOnce = (body: Uint8Array | undefined, isLast: boolean) =>
    caller.call(endpoint, { ...parts, body, meanwhile }, async (response) => {
      const printed = await receive(context, response, { ...target, schema, isLast })
      if ('failure' in printed) return printed
      await thread?.add({ question: prompt.turn, answer: printed.text, role: values.answerRole })
      return printed
    })
  const report = await (schema && parts.body
    ? schema.untilFits(parts.body, askOnce)
    : askOnce(parts.body, true))
  if ('failure' in report) throw report.failure
  if (file && options.output !== undefined) context.facts.files?.push(options.output)
  printReport(context, report)
}

/** A failure's body is neither the answer that the file is for, nor wanted on stdout. */
const withoutRaw = (context: Context): Context => ({ ...context, flags: { ...context.flags, raw: false } })

const loadPrinter = () => import('./printed-answer.ts')

interface Target {
  /** Instead of stdout. */
  file: FileOutput | undefined
  /** Of Markdown. */
  layout: Layout | undefined
  keepsText: boolean
  failOnCut: boolean
  schema: AnswerSchema | undefined
  /** There is no further try to get an answer that fits. */
  isLast: boolean
  /** When the run began: milliseconds since the epoch. */
  start: number
  /** `--usage`. */
  isAsked: boolean | undefined
}

const receive = (context: Context, response: HttpResponse, target: Target) =>
  keepingPart(context, target.file, () => printTo(target, context, response))

/** Prints the answer, or writes its file. Throws with `failOnCut` where it is not whole. */
async function printTo(
  target: Target,
  context: Context,
  response: HttpResponse,
): Promise<(PrintedAnswer & AnswerReport) | Misfit> {
  const { file, layout, keepsText, schema } = target
  const { flags, output, cleanups, timers } = context
  const toReport = (printed: PrintedAnswer) => ({
    ...printed,
    seconds: (Date.now() - target.start) / 1000,
    isAsked: target.isAsked,
  })
  const requireWhole = (report: AnswerReport) => {
    if (target.failOnCut) requireUncut(context, report)
  }
  if (schema) {
    const { printFitting } = await import('./fitting.ts')
    const { isLast } = target
    const keep = async (text: string) => file?.write(text)
    const how = { schema, isLast, output: file ?? output, keep, toReport, requireWhole }
    const fitting = await printFitting(context, response, how)
    if (!('failure' in fitting)) await file?.commit()
    return fitting
  }
  const { printAnswer } = await loadPrinter()
  const isRaw = flags.raw ?? false
  const printer = await layout?.createPrinter()
  const how = { isRaw, printer, keepsText, cleanups, timers }
  const printed = await printAnswer(response, file ?? output, how)
  const report = toReport(printed)
  requireWhole(report)
  await file?.commit()
  return report
}

async function openOutput({ host }: Context, name: string | undefined): Promise<FileOutput | undefined> {
  if (name === undefined || name === '-') return undefined
  const { openFileOutput } = await import('../../io/file-output.ts')
  return openFileOutput(name, host)
}

async function readThread(
  context: Context,
  { thread: name }: ChatOptions,
  { prompt, values }: { prompt: Prompt; values: Settings },
): Promise<Thread | undefined> {
  if (name === undefined) return undefined
  if (prompt.given) throw usage(`--thread and ${prompt.given.name} both give a body: use only one of them`)
  const { openThread } = await import('./thread.ts')
  const { dryRun, curl } = context.flags
  const deadline = deadlineOf(context, { values }) || Infinity
  return openThread(context, name, { deadline, isPreview: Boolean(dryRun || curl) })
}
