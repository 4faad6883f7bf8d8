import type { BatchLine } from '../../batch/input.ts'
import { isCutBatchResult } from '../../content/answer-checks.ts'
import { readPromptArguments } from '../../content/prompt.ts'
import type { Context } from '../../context.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { BatchTextReader } from '../batch-text-reader.ts'
import { createLineCaller } from '../line-call.ts'
import { type ChatOptions, chooseChatModel, loadSchemaModule } from './chat.ts'

export async function createChatBatchMethods(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ChatOptions; words: string[] },
) {
  const { values } = settings
  const inputs = await readPromptArguments(context.input, options, words)
  const quiet = { ...context, messages: { ...context.messages, note() {} } }
  const { schemaRetries = 0, failOnCut = values.failOnCut } = options
  const schema =
    inputs.schema &&
    (await (await loadSchemaModule()).createAnswerSchema(quiet, settings, inputs.schema, schemaRetries))
  const rules = { context, failOnCut, schema }
  const model = () => chooseChatModel(options.model, values)
  const openReader = (line: BatchLine) => new BatchTextReader(line, rules)
  const shared = { endpoint: endpoints.chat, options, inputs, model, schema, openReader }
  return {
    ...(await createLineCaller(context, settings, shared)),
    /**
     * Rejects a result of `image`, which has `files`. The hash of such a result may equal the hash of a
     * `chat` line, because a hash covers only the model and the body.
     */
    isAccepted: (result: Record<string, unknown>) =>
      !Object.hasOwn(result, 'files') && !(failOnCut && isCutBatchResult(result)),
  }
}
