import type { BatchLine } from '../../batch/input.ts'
import type { ParsedBatchLine } from '../../batch/parsed-line.ts'
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
  const { raw = false } = context.flags
  const inputs = await readPromptArguments(context.input, options, words)
  const quiet = { ...context, messages: { ...context.messages, note() {} } }
  const { schemaRetries = 0 } = options
  const schema =
    inputs.schema &&
    (await (await loadSchemaModule()).createAnswerSchema(quiet, settings, inputs.schema, schemaRetries))
  const model = () => chooseChatModel(options.model, values)
  const common = { endpoint: endpoints.chat, options, inputs, model, schema, isTextOnly: !raw }
  const caller = await createLineCaller(context, settings, common)
  const failOnCut = options.failOnCut ?? values.failOnCut
  const rules = {
    timers: context.host.timers,
    failOnCut,
    schema,
    isRaw: raw,
    recordAnswerUsage: caller.recordAnswerUsage,
  } as const
  const openReader = (line: BatchLine) => new BatchTextReader(line, rules)
  return {
    ...caller,
    /**
     * Rejects a result of `image`, which has `files`. The hash of such a result may equal the hash of a
     * `chat` line, because a hash covers only the model and the body.
     */
    isAccepted: (result: Record<string, unknown>) =>
      !Object.hasOwn(result, 'files') && !(failOnCut && isCutBatchResult(result)),
    prepare: (input: ParsedBatchLine) => caller.prepare(input, openReader),
  }
}
