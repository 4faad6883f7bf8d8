import { buildBody } from '../../client/generate-body.ts'
import { assigning, parseAssignment } from '../../client/set.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { Settings } from '../../settings/schemas.ts'
import { openFileOutput } from '../../terminal/file-output.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { ChatOptions } from '../chat.ts'
import { requireUncut, tellAbout } from '../footer.ts'
import { perform } from '../perform.ts'
import { readPrompt } from '../prompt.ts'
import { readSettings } from '../settings.ts'
import { readThread, saveThread } from '../thread.ts'

/** Asks a model and prints its answer (`cli.md`, chat). */
export async function ask(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const { flags, host, progress } = context
  const start = Date.now()
  const { values, ...settings } = await readSettings(context)
  const body = await readBody(context, options, words)
  const isStream = options.stream ?? values.stream
  const { output, thread } = options
  const file = output === undefined || output === '-' ? undefined : await openFileOutput(output, host.cwd)
  const threadFile = thread === undefined ? undefined : await openFileOutput(thread, host.cwd, 0o600)

  // The body of a failure is not the answer that the file is for, and stdout is not asked for.
  const asking = file ? { ...context, flags: { ...flags, raw: false } } : context
  const response = await perform(asking, { values, ...settings }, chatEndpoint(values, isStream), {
    params: {
      family: values.family,
      model: options.model ?? values.chatModel ?? `${values.family}-2.5-pro`,
    },
    body: isStream && values.streamVia === 'body' ? await askForStream(body) : body,
    ...(isStream && values.streamVia !== 'body' ? { query: 'alt=sse' } : {}),
    ...(isStream ? { headers: { Accept: 'text/event-stream, application/json' } } : {}),
    meanwhile: loadReader,
  })
  if (!response) return

  const { printAnswer } = await loadReader()
  const answer = await printAnswer(response, file ?? context.output, {
    isRaw: flags.raw ?? false,
    keepsText: threadFile !== undefined,
    cleanups: progress.cleanups,
    timers: context.timers,
  })
  const told = { ...answer, seconds: (Date.now() - start) / 1000, isAsked: options.usage }
  if (options.failOnCut ?? values.failOnCut) requireUncut(context, told)
  await file?.commit()
  if (threadFile) await saveThread(threadFile, { body, answer: answer.text, role: values.answerRole })
  tellAbout(context, told)
}

const loadReader = () => import('../answer.ts')

async function readBody(
  { input, host }: Context,
  options: ChatOptions,
  words: string[],
): Promise<Uint8Array> {
  const assignments = (options.set ?? []).map(parseAssignment)
  const prompt = await readPrompt(input, words, options)
  if (options.thread !== undefined && prompt.given) {
    throw usage(`--thread and ${prompt.given.name} both give a body: take one of them`)
  }
  const thread = options.thread === undefined ? undefined : await readThread(input, options.thread, host.cwd)
  const given = prompt.given ?? thread
  const { maxOutputTokens } = options
  return buildBody({
    ...(given ? { given } : {}),
    turn: prompt.turn,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    assignments,
  })
}

const chatEndpoint = ({ streamVia }: Settings, isStream: boolean) =>
  isStream && streamVia === 'path' ? endpoints.streamChat : endpoints.chat

const askForStream = (body: Uint8Array) =>
  buildBody({
    given: { text: Buffer.from(body).toString(), name: 'the body' },
    turn: [],
    assignments: [assigning(['stream'], 'true')],
  })
