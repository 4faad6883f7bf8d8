import { cutOf } from '../../content/footer.ts'
import type { AnswerSchema } from '../../content/schema/schema.ts'
import { countAnswer, countAttempts, type Spent, tokensOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { createCaller } from '../../http/call.ts'
import { createSecretRenewal } from '../../http/credentials.ts'
import { pathSegment, type RequestParts } from '../../http/request.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-fields.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { buildLineBody, type LineParts, readLineParts } from '../line-body.ts'
import { type ChatOptions, chooseModel, readSchema } from './chat.ts'

/** One line of a batch: a prompt, or a whole body. */
type ChatLine = { model?: string } & ({ prompt: string } | { body: string })

interface ChatLineRequest {
  model: string
  body: Uint8Array
}

/** Makes what asks a model for each line of a batch. Throws a usage error. */
export async function readChatLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ChatOptions; words: string[] },
) {
  const { values } = settings
  const { flags, timers } = context
  const isRaw = flags.raw ?? false
  const schema = await readSchema({ ...context, note() {} }, settings, options)
  const parts = withSchemaParts(await readLineParts(context, words, options), schema)
  const model = chooseModel(options.model, values)
  const failOnCut = options.failOnCut ?? values.failOnCut
  // A failure's body is a part of its result.
  const quiet = { ...context, flags: { ...flags, raw: false } }
  const caller = createCaller(quiet, settings, { isOneOfMany: true })
  const withFreshSecret = createSecretRenewal(caller)

  const requestOf = (call: ChatLineRequest) => ({
    params: { family: values.family, model: call.model },
    body: call.body,
  })

  return {
    tokensOf,
    async prepare(line: ChatLine): Promise<ChatLineRequest> {
      if (line.model !== undefined) pathSegment('model', line.model)
      return { model: line.model ?? model, body: await buildLineBody(line, parts) }
    },
    preview: async (call: ChatLineRequest) => void (await caller.preview(endpoints.chat, requestOf(call))),
    async ask(
      { call, spent }: { call: ChatLineRequest; spent: Spent },
      { onRetry }: Pick<RequestParts, 'onRetry'>,
    ) {
      const start = timers.now()
      const onAnswer = (summary: AnswerSummary) => countAnswer(spent, context.summary, summary)
      const askOnce = (body: Uint8Array, isLast: boolean) => {
        const how = { isRaw, failOnCut, schema, isLast, onAnswer }
        const request = { ...requestOf({ ...call, body }), onRetry }
        return withFreshSecret(() =>
          countAttempts(spent, () =>
            caller.call(endpoints.chat, request, (response) => readLine(response, how)),
          ),
        )
      }
      const answer = await (schema
        ? schema.untilFits(call.body, askOnce, schema.addTurns)
        : askOnce(call.body, true))
      if ('failure' in answer) throw answer.failure
      return { ...answer, seconds: (timers.now() - start) / 1000 }
    },
  }
}

interface LineReading {
  isRaw: boolean
  failOnCut: boolean
  schema: AnswerSchema | undefined
  /** An answer that does not fit is a failure. */
  isLast: boolean
  /** Called once it is known what an answer took. */
  onAnswer(summary: AnswerSummary): void
}

const withSchemaParts = (parts: LineParts, schema: AnswerSchema | undefined): LineParts => ({
  ...parts,
  files: [...parts.files, ...(schema?.parts ?? [])],
  assignments: [...(schema?.assignments ?? []), ...parts.assignments],
})

/** Reads a whole answer as the result of a line. Throws a `CliError`. */
async function readLine(
  response: HttpResponse & { attempts: number },
  { isRaw, failOnCut, schema, isLast, onAnswer }: LineReading,
) {
  const bytes = await readBody(response.body)
  const contentType = response.headers['content-type'] ?? ''
  const pieces: string[] = []
  const decoder = createAnswerDecoder(contentType, { text: (text) => void pieces.push(text), raw: undefined })
  decoder.push(bytes)
  decoder.end()
  const { summary } = decoder
  onAnswer(summary)
  const text = pieces.join('')
  const cut = cutOf({ summary, isBlank: text.trim() === '' })
  if (failOnCut && cut !== undefined) throw notUnderstood(cut).with({ answer: text })
  const checked = await schema?.check(text, cut)
  const { model, stopReason } = summary
  const known = { model, stopReason, attempts: response.attempts }
  if (checked && 'failure' in checked) {
    if (isLast) throw checked.failure
    return { ...known, ...checked }
  }
  const content = isRaw ? { response: readJson(bytes, contentType) } : (checked ?? { text })
  return { ...known, content }
}

function readJson(bytes: Uint8Array, contentType: string): string {
  const text = new TextDecoder().decode(bytes)
  parseReceivedBody(text, contentType)
  return text
}
