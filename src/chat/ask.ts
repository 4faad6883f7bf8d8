import { createCaller } from '../calls/caller.ts'
import { deadlineOf, readSettings } from '../calls/settings.ts'
import type { Context } from '../context.ts'
import { CliError, usage } from '../errors.ts'
import { type BodyParts, buildBody } from '../generation/body.ts'
import { requireUncut, tellAbout } from '../generation/footer.ts'
import { type Prompt, type PromptOptions, readPrompt } from '../generation/prompt.ts'
import { oneLine } from '../io/escape.ts'
import type { FileOutput } from '../io/file-output.ts'
import type { Settings } from '../settings/schemas.ts'
import { endpoints } from '../wire/endpoints.ts'
import { assigning, parseAssignment } from '../wire/json/assignment.ts'
import { chooseLayout } from './layout.ts'
import type { Thread } from './thread.ts'

export interface ChatOptions extends PromptOptions {
  model?: string | undefined
  system?: string | undefined
  temperature?: number | undefined
  maxOutputTokens?: number | undefined
  set?: string[] | undefined
  stream?: boolean | undefined
  failOnCut?: boolean | undefined
  output?: string | undefined
  thread?: string | undefined
  usage?: boolean | undefined
  markdown?: boolean | undefined
}

/** Asks a model and prints its answer. */
export async function ask(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const { flags, cleanups } = context
  const start = Date.now()
  const { values, ...settings } = await readSettings(context)
  const assignments = (options.set ?? []).map(parseAssignment)
  const system = await readSystem(context, options.system)
  const layout = chooseLayout(context, options, values)
  const prompt = await readPrompt(context.input, words, options)
  const file = await openOutput(context, options.output)
  const thread = await readThread(context, options.thread, { output: options.output, prompt, values })
  const body = await buildWhole(prompt, thread, { ...options, ...system, assignments })
  const isStream = options.stream ?? values.stream

  // The body of a failure is not the answer that the file is for, and stdout is not asked for.
  const asking = file ? { ...context, flags: { ...flags, raw: false } } : context
  const caller = createCaller(asking, { values, ...settings })
  const endpoint = chatEndpoint(values, isStream)
  const parts = {
    params: {
      family: values.family,
      model: options.model ?? values.chatModel ?? `${values.family}-2.5-pro`,
    },
    body: isStream && values.streamVia === 'body' ? await askForStream(body) : body,
    query: isStream && values.streamVia !== 'body' ? 'alt=sse' : undefined,
    headers: isStream ? { Accept: 'text/event-stream, application/json' } : undefined,
    meanwhile: () => Promise.all([loadReader(), layout?.load()]),
  }
  if (await caller.preview(endpoint, parts)) return
  const told = await caller.call(endpoint, parts, async (response) => {
    const { printAnswer } = await loadReader()
    const printed = await keepingParts(context, file, async () => {
      const printed = await printAnswer(response, file ?? context.output, {
        isRaw: flags.raw ?? false,
        printer: await layout?.createPrinter(),
        keepsText: thread !== undefined,
        cleanups,
        timers: context.timers,
      })
      const whole = { ...printed, seconds: (Date.now() - start) / 1000, isAsked: options.usage }
      if (options.failOnCut ?? values.failOnCut) requireUncut(context, whole)
      await file?.commit()
      return whole
    })
    await thread?.add({ question: prompt.turn, answer: printed.text, role: values.answerRole })
    return printed
  })
  tellAbout(context, told)
}

const loadReader = () => import('./answer.ts')

/** Before the prompt, which would take a stdin that `@-` asks for. */
async function readSystem({ input }: Context, given: string | undefined): Promise<{ system?: string }> {
  if (given === undefined) return {}
  const system = await input.value(given, '--system')
  if (system.trim() === '') throw usage('--system: it is empty')
  return { system }
}

async function openOutput({ host }: Context, name: string | undefined): Promise<FileOutput | undefined> {
  if (name === undefined || name === '-') return undefined
  const { openFileOutput } = await import('../io/file-output.ts')
  return openFileOutput(name, host.cwd)
}

/** Whatever ends an answer early, a signal too: what has come of it stays, and the person is told where. */
async function keepingParts<T>(
  { cleanups, whenInterrupted }: Context,
  file: FileOutput | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!file) return work()
  cleanups.add(() => {
    const outcome = file.keep()
    if (outcome) whenInterrupted(() => oneLine(`the answer was cut off; ${outcome}`, 2000))
  })
  try {
    return await work()
  } catch (error) {
    const outcome = file.keep()
    if (!outcome || !(error instanceof CliError)) throw error
    throw new CliError(error.kind, `${error.message}; ${outcome}`, error.details)
  }
}

async function readThread(
  context: Context,
  name: string | undefined,
  { output, prompt, values }: { output: string | undefined; prompt: Prompt; values: Settings },
): Promise<Thread | undefined> {
  if (name === undefined) return undefined
  if (prompt.given) throw usage(`--thread and ${prompt.given.name} both give a body: take one of them`)
  const { openThread } = await import('./thread.ts')
  const { dryRun, curl } = context.flags
  const deadline = deadlineOf(context, { values })
  const patience = values.timeout * 1000 || Infinity
  return openThread(context, name, { output, deadline, patience, isPreview: Boolean(dryRun || curl) })
}

function buildWhole(
  prompt: Prompt,
  thread: Thread | undefined,
  { system, temperature, maxOutputTokens, assignments }: Omit<BodyParts, 'given' | 'turn'>,
): Promise<Uint8Array> {
  const given = prompt.given ?? thread?.given
  return buildBody({ given, turn: prompt.turn, system, temperature, maxOutputTokens, assignments })
}

const chatEndpoint = ({ streamVia }: Settings, isStream: boolean) =>
  isStream && streamVia === 'path' ? endpoints.streamChat : endpoints.chat

const askForStream = (body: Uint8Array) =>
  buildBody({
    given: { text: Buffer.from(body).toString(), name: 'the body' },
    turn: [],
    assignments: [assigning(['stream'], 'true')],
  })
