import { buildBody, type Part } from '../content/body.ts'
import { createAssumedWarning } from '../content/footer.ts'
import { readFileParts } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { countAnswer, type Spent, tokensOf } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { createCaller } from '../http/call.ts'
import { createSecretRenewal } from '../http/credentials.ts'
import { pathSegment } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { endpoints } from '../wire/endpoints.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import { type BodyFlags, readBodyFlags } from './body-flags.ts'
import type { SendPart } from './long-answer.ts'

/** What one line of a batch asks for: a prompt, or a whole body. */
export type LineInput = { model?: string } & ({ prompt: string } | { body: string })

/** What is sent for one line. */
export interface LineRequest {
  model: string
  body: Uint8Array
}

/** What all lines have in common. */
interface SharedLineParts {
  endpoint: typeof endpoints.chat | typeof endpoints.image
  options: BodyFlags
  /** They come before each line's prompt. */
  words: string[]
  /** For lines that name none. Throws a usage error if there is none. */
  model(): string
  schema?: AnswerSchema | undefined
}

/** No flag and no file can hold it. */
const placeholder = 'the prompt\0'

/** A line that is asked. */
export interface LineContext {
  index: number
  spent: Spent
}

/** Throws a `CliError` if the batch sends no further request for an unfinished answer. */
export type RequireNext = () => void

/** What is told while an answer is read. */
export interface LineEvents {
  /** Called once it is known what the answer took. */
  onSummary(summary: AnswerSummary): void
  /** Called if the service did not end the stream. */
  onAssumed(): void
}

/** How the requests of a batch's lines are built and sent, and their answers counted. Throws a usage error. */
export async function createLineSender(
  outer: Context,
  settings: ResolvedSettings,
  { endpoint, options, words, model, schema }: SharedLineParts,
) {
  if (options.input !== undefined) throw usageError('-i and --batch both give requests: use only one of them')
  const { input } = outer
  const flags = await readBodyFlags(input, options, schema)
  const text = words.length === 0 ? '' : await input.joinWords(words, 'the prompt')
  const first: Part[] = text === '' ? [] : [{ text }]
  const last = [...(await readFileParts(input, options.file)), ...(schema?.parts ?? [])]
  // A prompt is all in which the bodies of prompts differ: to build each takes several times as long.
  const sample = await buildBody({ ...flags, turn: [...first, { text: placeholder }, ...last] })
  const pieces = Buffer.from(sample).toString().split(JSON.stringify(placeholder))
  const bodyOf = (line: LineInput) =>
    'prompt' in line
      ? Buffer.from(pieces.join(JSON.stringify(line.prompt)))
      : buildBody({ ...flags, given: { text: line.body, name: 'its body' }, turn: [...first, ...last] })
  // A failure's body is a part of its result.
  const context = { ...outer, flags: { ...outer.flags, raw: false } }
  const caller = createCaller(context, settings, true)
  const withFreshSecret = createSecretRenewal(caller.forgetSecrets)
  const warnAssumed = createAssumedWarning(outer)
  const { family, retries } = settings.values
  const { retryUnknown = false } = outer.flags
  const requestOf = ({ model, body }: LineRequest) => ({ params: { family, model }, body })
  return {
    context,
    readTokens: tokensOf,
    retry: { repeat: endpoint.repeat, retries, retryUnknown },
    preview: async (request: LineRequest) => void (await caller.preview(endpoint, requestOf(request))),
    /** Builds the request of a line. Throws a usage error. */
    async build(line: LineInput): Promise<LineRequest> {
      if (line.model !== undefined) pathSegment('model', line.model)
      return { model: line.model ?? model(), body: await bodyOf(line) }
    },
    /** Counts what the answers to a line spend. */
    createEvents: ({ index, spent }: LineContext): LineEvents => ({
      onSummary: (summary) => countAnswer(spent, context.summary, summary),
      onAssumed: () => warnAssumed(index),
    }),
    /** Returns a function that sends the requests of a line. */
    createSend:
      (model: string, { spent }: LineContext): SendPart =>
      (body, read) =>
        withFreshSecret(() => {
          spent.attempts++
          return caller.call(endpoint, requestOf({ model, body }), read)
        }),
  }
}
