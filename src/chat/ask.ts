import { createCaller } from '../calls/caller.ts'
import { deadlineOf, readSettings } from '../calls/settings.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { type AnswerReport, printReport, requireUncut } from '../generation/footer.ts'
import type { Prompt } from '../generation/prompt.ts'
import type { FileOutput } from '../io/file-output.ts'
import { keepingPart } from '../io/kept-part.ts'
import type { Settings } from '../settings/schemas.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { chooseLayout, type Layout } from './layout.ts'
import type { PrintedAnswer } from './printed-answer.ts'
import { buildChatRequest, type ChatRequestOptions, readQuestion } from './request.ts'
import type { Thread } from './thread.ts'

export interface ChatOptions extends ChatRequestOptions {
  failOnCut?: boolean | undefined
  output?: string | undefined
  thread?: string | undefined
  usage?: boolean | undefined
  markdown?: boolean | undefined
}

/** Asks a model and prints its answer. */
export async function ask(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const start = Date.now()
  const settings = await readSettings(context)
  const { values } = settings
  const layout = chooseLayout(context, options, values)
  const question = await readQuestion(context, words, options)
  const { prompt } = question
  const file = await openOutput(context, options.output)
  const thread = await readThread(context, options, { prompt, values })
  const { endpoint, parts } = await buildChatRequest(question, thread?.given, { options, values })

  const caller = createCaller(file ? withoutRaw(context) : context, settings)
  if (await caller.preview(endpoint, parts)) return
  const failOnCut = options.failOnCut ?? values.failOnCut
  const isAsked = options.usage
  const target = { file, layout, keepsText: thread !== undefined, failOnCut, start, isAsked }
  const meanwhile = () => Promise.all([loadPrinter(), layout?.load()])
  const report = await caller.call(endpoint, { ...parts, meanwhile }, async (response) => {
    const printed = await receive(context, response, target)
    await thread?.add({ question: prompt.turn, answer: printed.text, role: values.answerRole })
    return printed
  })
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
  /** When the run began: milliseconds since the epoch. */
  start: number
  /** `--usage`. */
  isAsked: boolean | undefined
}

const receive = (context: Context, response: HttpResponse, target: Target) =>
  keepingPart(context, target.file, () => printTo(target, context, response))

/** Prints the answer, or writes its file. Throws with `failOnCut` where it is not whole. */
async function printTo(
  { file, layout, keepsText, failOnCut, start, isAsked }: Target,
  context: Context,
  response: HttpResponse,
): Promise<PrintedAnswer & AnswerReport> {
  const { flags, output, cleanups, timers } = context
  const { printAnswer } = await loadPrinter()
  const isRaw = flags.raw ?? false
  const printer = await layout?.createPrinter()
  const how = { isRaw, printer, keepsText, cleanups, timers }
  const printed = await printAnswer(response, file ?? output, how)
  const report = { ...printed, seconds: (Date.now() - start) / 1000, isAsked }
  if (failOnCut) requireUncut(context, report)
  await file?.commit()
  return report
}

async function openOutput({ host }: Context, name: string | undefined): Promise<FileOutput | undefined> {
  if (name === undefined || name === '-') return undefined
  const { openFileOutput } = await import('../io/file-output.ts')
  return openFileOutput(name, host.cwd)
}

async function readThread(
  context: Context,
  { thread: name, output }: ChatOptions,
  { prompt, values }: { prompt: Prompt; values: Settings },
): Promise<Thread | undefined> {
  if (name === undefined) return undefined
  if (prompt.given) throw usage(`--thread and ${prompt.given.name} both give a body: use only one of them`)
  const { openThread } = await import('./thread.ts')
  const { dryRun, curl } = context.flags
  const deadline = deadlineOf(context, { values })
  const patience = values.timeout * 1000 || Infinity
  return openThread(context, name, { output, deadline, patience, isPreview: Boolean(dryRun || curl) })
}
