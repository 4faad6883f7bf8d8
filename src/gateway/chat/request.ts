import { buildBody } from '../../content/body.ts'
import { type Prompt, type PromptOptions, readPrompt } from '../../content/prompt.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { RequestParts } from '../../http/request.ts'
import type { Settings } from '../../settings/schemas.ts'
import { type Endpoint, endpoints } from '../../wire/endpoints.ts'
import { type Assignment, assigning, parseAssignment } from '../../wire/json/assignment.ts'

export interface ChatRequestOptions extends PromptOptions {
  model?: string
  system?: string
  temperature?: string
  maxOutputTokens?: string
  set?: string[]
  stream?: boolean
}

/** What a person asks. */
export interface Question {
  prompt: Prompt
  /** The text of `--system`. */
  system: string | undefined
  assignments: Assignment[]
}

/** Reads what is asked from words, flags, files and stdin. Throws a usage error. */
export async function readQuestion(
  context: Context,
  words: string[],
  options: ChatRequestOptions,
): Promise<Question> {
  const assignments = (options.set ?? []).map(parseAssignment)
  // Before the prompt, which would use up a stdin that `--system @-` asks for.
  const system = await readSystem(context, options.system)
  return { prompt: await readPrompt(context.input, words, options), system, assignments }
}

async function readSystem({ input }: Context, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  const system = await input.value(given, '--system')
  if (system.trim() === '') throw usage('--system: it is empty')
  return system
}

/** Builds the request. `history` is the body that the question is added to, where the prompt has none. */
export async function buildChatRequest(
  { prompt, system, assignments }: Question,
  history: Prompt['given'],
  { options, values }: { options: ChatRequestOptions; values: Settings },
): Promise<{ endpoint: Endpoint; parts: RequestParts }> {
  const { model, temperature, maxOutputTokens, stream: isStream = values.stream } = options
  const given = prompt.given ?? history
  const { turn } = prompt
  const body = await buildBody({ given, turn, system, temperature, maxOutputTokens, assignments })
  return {
    endpoint: isStream && values.streamVia === 'path' ? endpoints.streamChat : endpoints.chat,
    parts: {
      params: {
        family: values.family,
        model: model ?? values.chatModel ?? `${values.family}-2.5-pro`,
      },
      body: isStream && values.streamVia === 'body' ? await askForStream(body) : body,
      query: isStream && values.streamVia !== 'body' ? 'alt=sse' : undefined,
      headers: isStream ? { Accept: 'text/event-stream, application/json' } : undefined,
    },
  }
}

const askForStream = (body: Uint8Array) =>
  buildBody({
    given: { text: Buffer.from(body).toString(), name: 'the body' },
    turn: [],
    assignments: [assigning(['stream'], 'true')],
  })
