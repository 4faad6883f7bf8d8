import type { Context } from '../context.ts'
import type { Caller } from '../http/call.ts'
import type { RequestParts } from '../http/request.ts'
import type { Output } from '../io/output.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { printAnswer } from './chat/answer.ts'
import { buildChatRequest } from './chat/chat.ts'

/** The longest answer to each question of a check, in tokens. */
export const longestAnswer = 16

/** A chat request that costs little. */
export function buildTrial(
  { values }: ResolvedSettings,
  { stream }: { stream: boolean },
): Promise<{ endpoint: Endpoint; parts: RequestParts }> {
  const question = { turn: [{ text: 'Say hello.' }], text: '' }
  const options = { stream, maxOutputTokens: String(longestAnswer) }
  return buildChatRequest(question, { options, values })
}

/**
 * Asks the model for a few tokens, as `chat` does, and prints nothing. A cut or empty answer will do. Returns the content
 * type that the answer had. Throws a `CliError`.
 */
export async function tryChat(
  context: Context,
  settings: ResolvedSettings,
  { caller, stream }: { caller: Caller; stream: boolean },
): Promise<string> {
  const { endpoint, parts } = await buildTrial(settings, { stream })
  return caller.call(endpoint, parts, async (response) => {
    const quiet = { ...context, output: silent, start: context.timers.now() }
    await printAnswer(quiet, response, { isStreamed: stream, demand: 'anything' })
    return response.headers['content-type'] ?? ''
  })
}

const silent: Output = { isTerminal: false, async write() {}, async flush() {} }
