import { buildBody, type Part } from '../content/body.ts'
import { createAssumedWarning } from '../content/footer.ts'
import { readFileParts } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { countAnswer, countAttempts, type Spent, tokensOf } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { createCaller, type ReadableResponse } from '../http/call.ts'
import { createSecretRenewal } from '../http/credentials.ts'
import { pathSegment } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { endpoints } from '../wire/endpoints.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import { type BodyFlags, readBodyFlags } from './body-flags.ts'

/** What one line of a batch asks for: a prompt, or a whole body. */
export type LineQuestion = { model?: string } & ({ prompt: string } | { body: string })

/** What is sent for one line. */
export interface LineRequest {
  model: string
  body: Uint8Array
}

/** What all lines have in common. */
interface Common {
  options: BodyFlags
  /** They come before each line's prompt. */
  words: string[]
  /** For lines that name none. Throws a usage error if there is none. */
  model(): string
  schema?: AnswerSchema | undefined
}

/** Makes what builds the request of each line. Both throw a usage error. */
export async function createRequestBuilder(
  { input }: Context,
  { options, words, model, schema }: Common,
): Promise<(line: LineQuestion) => Promise<LineRequest>> {
  if (options.input !== undefined) throw usage('-i and --batch both give requests: use only one of them')
  const flags = await readBodyFlags(input, options, schema)
  const text = words.length === 0 ? '' : await input.words(words, 'the prompt')
  const first: Part[] = text === '' ? [] : [{ text }]
  const last = [...(await readFileParts(input, options.file)), ...(schema?.parts ?? [])]
  const build = (prompt: string) => buildBody({ turn: [...first, { text: prompt }, ...last], ...flags })
  // A prompt is all in which the bodies of prompts differ.
  const sample = Buffer.from(await build(placeholder)).toString()
  const [before = '', after, ...others] = sample.split(JSON.stringify(placeholder))
  const isFixed = after !== undefined && others.length === 0
  const bodyOf = (line: LineQuestion) => {
    if ('body' in line)
      return buildBody({ given: { text: line.body, name: 'its body' }, turn: [...first, ...last], ...flags })
    return isFixed ? Buffer.from(`${before}${JSON.stringify(line.prompt)}${after}`) : build(line.prompt)
  }
  return async (line) => {
    if (line.model !== undefined) pathSegment('model', line.model)
    return { model: line.model ?? model(), body: await bodyOf(line) }
  }
}

/** No flag and no file can hold it. */
const placeholder = 'the prompt\0'

/** A line that is asked. */
export interface AskedLine<Request extends LineRequest = LineRequest> {
  index: number
  call: Request
  spent: Spent
}

/** What is told while an answer is read. */
export interface LineEvents {
  /** Called once it is known what the answer took. */
  onSummary(summary: AnswerSummary): void
  /** Called if the service did not end the stream. */
  onAssumed(): void
}

/** How the lines of a batch are sent, and their answers counted. */
export function createLineCaller(
  outer: Context,
  settings: ResolvedSettings,
  endpoint: typeof endpoints.chat | typeof endpoints.image,
) {
  // A failure's body is a part of its result.
  const context = { ...outer, flags: { ...outer.flags, raw: false } }
  const caller = createCaller(context, settings, { isOneOfMany: true })
  const withFreshSecret = createSecretRenewal(caller.forgetSecrets)
  const warnAssumed = createAssumedWarning(outer)
  const { family, retries } = settings.values
  const { retryUnknown = false } = outer.flags
  const requestOf = ({ model, body }: LineRequest) => ({ params: { family, model }, body })
  return {
    context,
    tokensOf,
    retry: { repeat: endpoint.repeat, retries, retryUnknown },
    preview: async (request: LineRequest) => void (await caller.preview(endpoint, requestOf(request))),
    /** Sends the request of a line, and counts what it spends. */
    send: <T extends object>(
      { index, call, spent }: AskedLine,
      read: (response: ReadableResponse, events: LineEvents) => Promise<T>,
    ): Promise<T & { attempts: number }> => {
      const events: LineEvents = {
        onSummary: (summary) => countAnswer(spent, context.summary, summary),
        onAssumed: () => warnAssumed(index),
      }
      return withFreshSecret(() =>
        countAttempts(spent, () =>
          caller.call(endpoint, requestOf(call), async (response) => ({
            ...(await read(response, events)),
            attempts: response.attempts,
          })),
        ),
      )
    },
  }
}
