import { buildRequestBody } from '../../content/body.ts'
import { readPromptInputs } from '../../content/prompt.ts'
import { saveReceivedAnswer } from '../../content/saved-answer.ts'
import type { Context } from '../../context.ts'
import { CliError, usageError } from '../../errors.ts'
import { createServiceCaller } from '../../http/call.ts'
import { loadMarkdownLayout } from '../../io/answer-printer.ts'
import { openFileOutput } from '../../io/file-output.ts'
import { ignoreClosedReader } from '../../io/output.ts'
import { addFileToReport } from '../../report-data.ts'
import { readSettings } from '../../settings/resolve.ts'
import type { Settings } from '../../settings/schemas.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { createJsonAssignment } from '../../wire/json/edit.ts'
import type { WorkHooks } from '../../work-tracker.ts'
import { type BodyFlags, createBodyParts } from '../body-flags.ts'
import {
  type AnswerPartReader,
  ContinuedAnswer,
  createDeadlineCheck,
  type SendPartRequest,
  toFailureAfterAnsweredRequest,
} from '../continued-answer.ts'
import type { AnswerOutput, AnswerPrintOptions } from './answer.ts'

export interface ChatOptions extends BodyFlags {
  schemaRetries?: number
  stream?: boolean
  failOnCut?: boolean
  output?: string
  thread?: string
  usage?: boolean
  markdown?: boolean
}

export async function runChat(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const settings = await readSettings(context)
  const { values } = settings
  const { given, turn, ...inputs } = await readPromptInputs(context, options, words)
  const { schemaRetries = 0 } = options
  const schema =
    inputs.schema &&
    (await (await loadSchemaModule()).createAnswerSchema(context, settings, inputs.schema, schemaRetries))
  const fileName = options.output === '-' ? undefined : options.output
  const { markdown = values.markdown && context.output.isTerminal } = options
  if (options.markdown && fileName !== undefined)
    throw usageError('--markdown formats printed answers: it cannot be combined with -o FILE')
  const isMarkdown = markdown && !schema && !context.flags.raw && fileName === undefined
  if (options.thread !== undefined && given)
    throw usageError(`--thread and ${given.name} both give a body: use only one of them`)
  const file = fileName === undefined ? undefined : await openFileOutput(fileName, context)
  const conversation =
    options.thread === undefined
      ? undefined
      : await (await import('./conversation.ts')).openConversation(context, options.thread)
  const model = chooseChatModel(options.model ?? conversation?.model, values)
  if (options.model === undefined && model !== chooseChatModel(undefined, values))
    context.messages.note(`${options.thread}: using ${model}, the thread's model. -m changes it`)
  const via = (options.stream ?? values.stream) ? values.streamVia : undefined
  const bodyParts = createBodyParts(options, inputs, schema)
  // The field `stream` is set before the fields of `--set`, so that `--set stream=false` overrides it.
  if (via === 'body') bodyParts.assignments.unshift(createJsonAssignment(['stream'], 'true'))
  const endpoint = via === 'path' ? endpoints.streamChat : endpoints.chat
  const bodyText = buildRequestBody({
    ...bodyParts,
    given: given ?? conversation?.stored,
    turn: [...turn, ...(schema?.parts ?? [])],
  })
  const parts = {
    params: { family: values.family, model },
    body: Buffer.from(bodyText),
    query: via && via !== 'body' ? 'alt=sse' : undefined,
    headers: via && { Accept: 'text/event-stream, application/json' },
    requireLock: conversation?.requireLock,
    meanwhile: () => Promise.all([loadAnswer(), isMarkdown && loadMarkdownLayout()]),
  }

  const caller = createServiceCaller(context, settings)
  if (await caller.preview(endpoint, parts)) return
  const printOptions: AnswerPrintOptions = {
    file,
    isMarkdown,
    isStreamed: via !== undefined,
    failOnCut: options.failOnCut ?? values.failOnCut,
    schema,
    showsUsage: options.usage,
  }
  // With --thread or --report, parley reads the whole answer even if the reader of stdout has closed the
  // pipe.
  const isRead = conversation !== undefined || context.flags.report !== undefined
  const output = isRead ? ignoreClosedReader(context.output) : context.output
  let answerOutput: AnswerOutput | undefined
  let mismatch: CliError | undefined
  let isAnswered = false
  const hooks: WorkHooks = {
    save: () => [
      ...(answerOutput?.save() ?? []),
      mismatch && saveReceivedAnswer(context, mismatch.details.answer ?? '', { file }),
    ],
    onInterrupt: () => (isAnswered ? undefined : conversation?.unchangedNote),
    explain(failure) {
      const { kind, message } = failure
      const why = mismatch && kind === 'not-sent' ? `${mismatch.message}; ${message}` : message
      const explained = mismatch ? toFailureAfterAnsweredRequest(failure.with({}, why)) : failure
      const { sent = 'no' } = explained.details
      if (!conversation || isAnswered || sent === 'no') return explained
      return explained.with({}, `${explained.message}; ${conversation.unchangedNote}`)
    },
  }
  async function query(first: Uint8Array): Promise<void> {
    const answer = new ContinuedAnswer(first)
    const send: SendPartRequest = (body, read) =>
      caller.call(endpoint, { ...parts, body, hasOutput: answerOutput?.hasOutput() }, read)
    const reader: AnswerPartReader<void> = {
      async read(response) {
        const { openAnswerOutput } = await loadAnswer()
        answerOutput ??= await openAnswerOutput({ ...context, output }, printOptions)
        return answerOutput.read(response)
      },
      async finish(response) {
        const finished = answerOutput as AnswerOutput
        await finished.finish(response, answer)
        finished.close()
        answerOutput = undefined
        mismatch = undefined
        isAnswered = true
        response.accept()
        const { system } = inputs
        const role = values.answerRole
        await conversation?.addTurn({ question: turn, answer: finished.text(), role, system, model })
      },
    }
    try {
      await answer.receive(send, reader, { requireNext: createDeadlineCheck(context) })
    } catch (error) {
      if (error instanceof CliError && error.details.isMismatch) {
        mismatch = error
        answerOutput?.close()
        answerOutput = undefined
      }
      throw error
    }
  }
  const work = () =>
    schema ? schema.retryUntilMatching({ body: parts.body, retries: 0 }, query) : query(parts.body)
  await context.tracker.during(hooks, work).finally(() => answerOutput?.close())
  if (fileName !== undefined) addFileToReport(context.reportData, fileName)
  if (file?.savedNote) context.messages.note(file.savedNote)
}

const loadAnswer = () => import('./answer.ts')

export const loadSchemaModule = () => import('../../content/schema/schema.ts')

export const chooseChatModel = (given: string | undefined, { chatModel, family }: Settings): string =>
  given ?? chatModel ?? `${family}-2.5-pro`
