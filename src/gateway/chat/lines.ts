import { cutOf, lackOf } from '../../content/footer.ts'
import type { AnswerSchema, Mismatch } from '../../content/schema/schema.ts'
import { usageOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import type { Timers } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { collectBody, type HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { notUnderstoodError } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { readAnswerBody } from '../answer-body.ts'
import {
  type AskedLine,
  createLineCaller,
  type LineEvents,
  type LineQuestion,
  type LineRequest,
} from '../line-body.ts'
import { type ChatOptions, chooseModel, readSchema } from './chat.ts'

/** Makes what asks a model for each line of a batch. Throws a usage error. */
export async function readChatLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ChatOptions; words: string[] },
) {
  const { values } = settings
  const { timers, flags } = context
  const schema = await readSchema({ ...context, note() {} }, settings, options)
  const model = () => chooseModel(options.model, values)
  const common = { endpoint: endpoints.chat, options, words, model, schema }
  const caller = await createLineCaller(context, settings, common)
  const reading = { isRaw: flags.raw, failOnCut: options.failOnCut ?? values.failOnCut, schema, timers }

  /** `misfits` are the answers that did not fit the schema: a retry of the line continues after them. */
  async function ask(request: LineRequest, misfits: Mismatch[], line: AskedLine) {
    const earlier = misfits.values()
    const askOnce = async (body: Uint8Array, isLast: boolean) => {
      const known = earlier.next()
      if (!known.done) return known.value
      const answer = await caller.send({ ...request, body }, line, (response, events) =>
        readLine(response, { ...reading, ...events, isLast }),
      )
      if ('failure' in answer) misfits.push(answer)
      return answer
    }
    const answer = await (schema
      ? schema.retryUntilMatching(request.body, askOnce)
      : askOnce(request.body, true))
    if ('failure' in answer) throw answer.failure
    return answer
  }

  return {
    ...caller,
    async prepare(question: LineQuestion) {
      const request = await caller.build(question)
      const misfits: Mismatch[] = []
      return { ...request, ask: (line: AskedLine) => ask(request, misfits, line) }
    },
  }
}

interface LineReading extends LineEvents {
  isRaw: boolean | undefined
  failOnCut: boolean
  schema: AnswerSchema | undefined
  /** An answer that does not fit is a failure. */
  isLast: boolean
  timers: Timers
}

/** Reads a whole answer as the result of a line. Throws a `CliError`, with what came of an answer that is not whole. */
async function readLine(
  response: HttpResponse,
  { isRaw, failOnCut, schema, isLast, onSummary, onAssumed, timers }: LineReading,
) {
  const contentType = response.headers['content-type'] ?? ''
  const pieces: string[] = []
  const body = isRaw ? collectBody() : undefined
  const decoder = createAnswerDecoder(contentType, { text: (text) => void pieces.push(text), raw: undefined })
  const { summary } = decoder
  function take(chunk: Uint8Array): void {
    body?.add(chunk)
    decoder.push(chunk)
  }
  let end: { isAssumed: boolean }
  try {
    end = await readAnswerBody(response, decoder, { take, takesRest: () => true, timers })
    decoder.end()
  } catch (error) {
    if (usageOf(summary)) onSummary(summary)
    // An error of the service's is a body of its own.
    const hasBody = error instanceof CliError && error.details.body !== undefined
    throw withPart(error, pieces.join('') || (hasBody ? '' : startOf(decoder.unread())))
  }
  onSummary(summary)
  const text = pieces.join('')
  const cut = cutOf({ summary, ...end })
  const isBlank = text.trim() === ''
  const demand = failOnCut ? 'uncut' : isRaw || schema ? 'anything' : 'text'
  const lack = lackOf({ summary, isBlank, holds: decoder.holds, ...end }, demand)
  // What has no text may hold something else that was paid for.
  if (lack !== undefined)
    throw notUnderstoodError(lack).with({ answer: isBlank ? startOf(decoder.unread()) : text })
  if (end.isAssumed) onAssumed()
  const checked = await schema?.check(text, cut)
  const { model, stopReason } = summary
  const known = { model, stopReason }
  if (checked && 'failure' in checked) {
    if (isLast) throw checked.failure
    return { ...known, ...checked }
  }
  const content = body ? { response: readJson(body.bytes(), contentType) } : (checked ?? { text })
  return { ...known, content }
}

const withPart = (error: unknown, answer: string): unknown =>
  error instanceof CliError && answer !== '' ? error.with({ answer }) : error

/** A longer body would not fit into a result, whose line is one text. Bytes. */
const longestKept = 64 * 1024 * 1024

const startOf = (body: Uint8Array): string => new TextDecoder().decode(body.subarray(0, longestKept))

/** Throws a `CliError`, with the answer, if it cannot stand in a line of JSON. */
function readJson(bytes: Uint8Array, contentType: string): string {
  const text = new TextDecoder().decode(bytes)
  try {
    parseReceivedBody(text, contentType)
  } catch (error) {
    throw withPart(error, text)
  }
  return text
}
