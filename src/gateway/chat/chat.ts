import { buildBody } from '../../content/body.ts'
import { printEnd } from '../../content/footer.ts'
import { loadMarkdown } from '../../content/layout.ts'
import { type Prompt, type PromptOptions, readPrompt } from '../../content/prompt.ts'
import type { AnswerSchema, SchemaOptions } from '../../content/schema/schema.ts'
import type { Context } from '../../context.ts'
import { CliError, usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import type { FileOutput } from '../../io/file-output.ts'
import { printWhileRead } from '../../io/output.ts'
import { type ResolvedSettings, readSettings } from '../../settings/resolve.ts'
import type { Settings } from '../../settings/schemas.ts'
import { type Endpoint, endpoints } from '../../wire/endpoints.ts'
import { type Assignment, parseAssignment } from '../../wire/json/edit.ts'
import type { Printing } from './answer.ts'
import type { Conversation } from './conversation.ts'

export interface ChatOptions extends ChatQuestionOptions, SchemaOptions {
  model?: string
  temperature?: string
  maxOutputTokens?: string
  stream?: boolean
  failOnCut?: boolean
  output?: string
  thread?: string
  usage?: boolean
  markdown?: boolean
}

/** Asks a model and prints its answer. */
export async function ask(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const settings = await readSettings(context)
  const { values } = settings
  const schema = await readSchema(context, settings, options)
  const isLaidOut = !schema && wantsLayout(context, options, values)
  const question = await readQuestion(context, words, options)
  const file = await openOutput(context, options.output)
  const conversation = await readConversation(context, options, question)
  const { endpoint, parts } = await buildChatRequest(question, {
    history: conversation?.given,
    schema,
    options,
    values,
  })

  let isAnswered = false
  const caller = createCaller(context, settings, {
    wayOn: () => (isAnswered ? undefined : conversation?.untouched),
  })
  if (await caller.preview(endpoint, parts)) return
  const printing: Printing = {
    file,
    isLaidOut,
    isKept: conversation !== undefined,
    isStreamed: options.stream ?? values.stream,
    demand: (options.failOnCut ?? values.failOnCut) ? 'uncut' : 'text',
    schema,
    isUsageAsked: options.usage,
  }
  // The thread and the report get an answer that was paid for, even if nobody reads stdout any more.
  const isRead = conversation !== undefined || context.flags.report !== undefined
  const output = isRead ? printWhileRead(context.output) : context.output
  const meanwhile = () => Promise.all([loadAnswer(), isLaidOut && loadMarkdown()])
  const askOnce = (body: Uint8Array | undefined, isLast: boolean) =>
    caller.call(endpoint, { ...parts, body, meanwhile }, async (response) => {
      const { printAnswer } = await loadAnswer()
      const answer = await printAnswer({ ...context, output }, response, printing, isLast)
      if ('failure' in answer) return answer
      isAnswered = true
      const { turn, system } = question
      await conversation?.add({ question: turn, answer: answer.text, role: values.answerRole, system })
      return answer
    })
  const asking = schema && parts.body ? schema.untilFits(parts.body, askOnce) : askOnce(parts.body, true)
  const answer = await asking.catch((error: unknown) => {
    const counted = schema ? withAttempts(error, context) : error
    throw isAnswered ? counted : withUntouched(counted, conversation)
  })
  if ('failure' in answer) throw answer.failure
  if (file && options.output !== undefined) {
    context.summary.files?.push(options.output)
    if (file.described) context.note(file.described)
  }
  printEnd(context, answer, options.usage)
}

/** With those of the answers before it that did not fit. */
const withAttempts = (error: unknown, { summary: { attempts } }: Context): unknown =>
  error instanceof CliError && error.details.attempts !== undefined ? error.with({ attempts }) : error

/** Of a request that left: what has become of the conversation. */
function withUntouched(error: unknown, conversation: Conversation | undefined): unknown {
  if (!(error instanceof CliError) || !conversation) return error
  const { sent = 'no' } = error.details
  if (sent === 'no') return error
  return new CliError(error.kind, `${error.message}; ${conversation.untouched}`, error.details)
}

/** While the service thinks. */
const loadAnswer = () => import('./answer.ts')

interface ChatQuestionOptions extends PromptOptions {
  system?: string
  set?: string[]
}

/** What a person asks. */
interface Question extends Prompt {
  /** The text of `--system`. */
  system?: string | undefined
  /** Those of `--set`. */
  assignments?: Assignment[]
}

/** Reads the question from words, flags, files and stdin. Throws a usage error. */
async function readQuestion(
  context: Context,
  words: string[],
  options: ChatQuestionOptions,
): Promise<Question> {
  const assignments = (options.set ?? []).map(parseAssignment)
  // Before the prompt, which would use up a stdin that `--system @-` asks for.
  const system = await readSystem(context, options.system)
  return { ...(await readPrompt(context.input, words, options)), system, assignments }
}

async function readSystem({ input }: Context, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  const system = await input.value(given, '--system')
  if (system.trim() === '') throw usage('--system: it is empty')
  return system
}

/** Reads the schema that answers must fit; what checks it is loaded only if one is given. */
export async function readSchema(
  context: Context,
  settings: ResolvedSettings,
  options: SchemaOptions,
): Promise<AnswerSchema | undefined> {
  if (options.schema === undefined && options.schemaRetries === undefined) return undefined
  const { openSchema } = await import('../../content/schema/schema.ts')
  return openSchema(context, settings, { ...options, schemaRetries: options.schemaRetries ?? 0 })
}

async function readConversation(
  context: Context,
  { thread: name }: ChatOptions,
  { given }: Question,
): Promise<Conversation | undefined> {
  if (name === undefined) return undefined
  if (given) throw usage(`--thread and ${given.name} both give a body: use only one of them`)
  const { openConversation } = await import('./conversation.ts')
  const { dryRun, curl } = context.flags
  const { deadline } = context.limit
  return openConversation(context, name, { deadline, isPreview: Boolean(dryRun || curl) })
}

interface ChatRequestOptions {
  /** The body that the question is added to, if it has none. */
  history?: Prompt['given']
  /** What the answer must fit, which is asked for beside the question. */
  schema?: AnswerSchema | undefined
  options: ChatOptions
  values: Settings
}

/** Builds the request. */
export async function buildChatRequest(
  { given, turn, system, assignments = [] }: Question,
  { history, schema, options, values }: ChatRequestOptions,
): Promise<{ endpoint: Endpoint; parts: RequestParts }> {
  const { model, temperature, maxOutputTokens, stream: isStream = values.stream } = options
  const body = await buildBody({
    given: given ?? history,
    turn: [...turn, ...(schema?.parts ?? [])],
    system,
    temperature,
    maxOutputTokens,
    hasSchema: schema !== undefined,
    isStream: isStream && values.streamVia === 'body',
    assignments: [...(schema?.assignments ?? []), ...assignments],
  })
  return {
    endpoint: isStream && values.streamVia === 'path' ? endpoints.streamChat : endpoints.chat,
    parts: {
      params: { family: values.family, model: chooseModel(model, values) },
      body,
      query: isStream && values.streamVia !== 'body' ? 'alt=sse' : undefined,
      headers: isStream ? { Accept: 'text/event-stream, application/json' } : undefined,
    },
  }
}

export const chooseModel = (given: string | undefined, { chatModel, family }: Settings): string =>
  given ?? chatModel ?? `${family}-2.5-pro`

async function openOutput(context: Context, name: string | undefined): Promise<FileOutput | undefined> {
  if (name === undefined || name === '-') return undefined
  const { openAnswerFile } = await import('../../content/answer-file.ts')
  return openAnswerFile(context, name)
}

/** Whether an answer's Markdown is laid out, or the text is printed as it is. */
function wantsLayout(
  { flags, output }: Context,
  options: { markdown?: boolean; output?: string },
  { markdown }: Settings,
): boolean {
  const isFile = options.output !== undefined && options.output !== '-'
  if (options.markdown && isFile)
    throw usage('--markdown is for what is printed: it does not go with -o FILE')
  const isWanted = options.markdown ?? (markdown && output.isTerminal)
  return isWanted && !flags.raw && !isFile
}
