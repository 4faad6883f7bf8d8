import { saveReceivedAnswer } from '../../content/saved-answer.ts'
import { type AnswerSchema, createAnswerSchema } from '../../content/schema/schema.ts'
import type { Context } from '../../context.ts'
import { type CliError, toFailure, usageError } from '../../errors.ts'
import { createAnswerPrinter } from '../../io/answer-printer.ts'
import { openFileOutput } from '../../io/file-output.ts'
import type { SavedData } from '../../io/saved-data.ts'
import { addFileToReport } from '../../report-data.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { createListAppendAssignment, editJson } from '../../wire/json/edit.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { readEventText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Follower } from '../following/follower.ts'

type TaskAnswerOptions = Awaited<ReturnType<typeof readAnswerFlags>>

export async function readAnswerFlags(
  context: Context,
  settings: ResolvedSettings,
  options: { schema?: string; last?: boolean; output?: string },
) {
  const { last = false, output, schema: schemaName } = options
  const name = output === '-' ? undefined : output
  /** stdout gets only the answer or, with --last and -o FILE, nothing. */
  const isStdoutReserved = last || output === '-' || (schemaName !== undefined && name === undefined)
  if (isStdoutReserved && context.flags.raw)
    throw usageError('--raw and the answer are both for stdout: use -o FILE for the answer')
  return {
    isStdoutReserved,
    schema: schemaName === undefined ? undefined : await readSchema(context, settings, schemaName),
    file: name === undefined ? undefined : await openFileOutput(name, context),
    name,
    markdown: settings.values.markdown,
  }
}

async function readSchema(context: Context, settings: ResolvedSettings, name: string): Promise<AnswerSchema> {
  const text = await context.input.readText(name, '--schema -')
  return createAnswerSchema(context, settings, { name, text })
}

export function addSchemaInstructions(
  { messages }: Context,
  body: Uint8Array,
  { instructions }: AnswerSchema,
): Uint8Array {
  const text = new TextDecoder().decode(body)
  const { events } = JSON.parse(text) as { events?: unknown }
  const index = Array.isArray(events) ? events.findLastIndex(hasContentBlocks) : -1
  if (index < 0) {
    messages.note('the agent does not get the schema: the task has no message to add it to')
    return body
  }
  const block = JSON.stringify({ type: 'text', text: instructions })
  return Buffer.from(editJson(text, [createListAppendAssignment(['events', index, 'content'], block)]))
}

const hasContentBlocks = (event: { type?: unknown; content?: unknown } | null): boolean =>
  event?.type === 'user.message' && Array.isArray(event.content)

export const isAnswerPrintedAlone = ({ file, isStdoutReserved }: TaskAnswerOptions): boolean =>
  file !== undefined || isStdoutReserved

/**
 * Checks the answer against the schema. Returns the text to print, or a failure if the text does not match or
 * takes too long to check. If the text is missing, returns a failure if parley prints only the answer,
 * otherwise a `problem`.
 */
export async function checkTaskAnswer(
  answerOptions: TaskAnswerOptions,
  answer: SessionEvent | undefined,
): Promise<{ text: string; problem?: string | undefined } | { failure: CliError }> {
  const text = getText(answer)
  const why = answer ? 'the answer has no text' : 'the agent gave no answer'
  const problem = text.trim() === '' ? why : undefined
  if (problem && isAnswerPrintedAlone(answerOptions)) return { failure: createResponseError(problem) }
  try {
    return { text: (await answerOptions.schema?.check(text, undefined)) ?? text, problem }
  } catch (error) {
    return { failure: toFailure(error) }
  }
}

export async function printOrSaveTaskAnswer(
  context: Context,
  answerOptions: TaskAnswerOptions,
  answer: string,
): Promise<void> {
  if (!isAnswerPrintedAlone(answerOptions)) return
  const { file, name, schema, markdown } = answerOptions
  const { reportData, messages } = context
  const output = file ?? context.output
  const isMarkdown = markdown && output.isTerminal && !schema
  const printer = await createAnswerPrinter({ ...context, output }, { isMarkdown })
  printer.add(answer)
  await printer.end()
  await file?.commit()
  if (name !== undefined) addFileToReport(reportData, name)
  if (file?.savedNote) messages.note(file.savedNote)
}

/**
 * Saves the received part of the answer if the run fails. With `-o FILE`, saves the part next to FILE.
 * Without `-o`, saves only a complete answer that was not printed, for example because it does not match the
 * schema.
 */
export function saveTaskAnswer(
  context: Context,
  { file, schema, isStdoutReserved }: TaskAnswerOptions,
  { task, state }: Follower,
): SavedData | undefined {
  const isAnswer = schema || (isStdoutReserved && !task.isInterrupted && !task.otherTask)
  const isSaved = file || (isAnswer && state.stop?.kind === 'done')
  return saveReceivedAnswer(context, isSaved ? getText(task.answer) : '', { file })
}

const getText = (answer: SessionEvent | undefined): string => (answer ? readEventText(answer) : '')
