import { existsSync } from 'node:fs'
import { buildRequestBody, type MessagePart } from '../../content/body.ts'
import { saveAnswerAfterFailure } from '../../content/saved-answer.ts'
import type { Context } from '../../context.ts'
import { CliError, convertFileErrors, toFileFailure } from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import { decodeUtf8 } from '../../io/file-content.ts'
import { writeFileAtomically } from '../../io/file-output.ts'
import { acquireLock, type FileLock } from '../../io/lock.ts'
import { findOutputTarget, resolveRealPath } from '../../io/paths.ts'
import { createJsonAssignment, createListAppendAssignment, removeJsonField } from '../../wire/json/edit.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'

interface Turn {
  question: MessagePart[]
  answer: string
  role: string
  /** System instruction that replaces the earlier instruction of the conversation. */
  system: string | undefined
  model: string
}

/**
 * Opens the file of `--thread`, which contains a request body. Locks the file, so that another run waits
 * until this run has added its answer. Throws a `CliError` of kind `file` if the file cannot be read or
 * written.
 */
export async function openConversation(context: Context, name: string) {
  const { input, messages, cleanups, flags, deadline } = context
  const { path } = findOutputTarget(context.host, name, { isRegular: true })
  const target = resolveRealPath(path)

  const read = async () => {
    if (!existsSync(target)) return undefined
    const text = decodeUtf8(await input.readFile(target), name).trimEnd()
    if (text === '') return undefined
    const thread = tryParseJson(text)
    if (!isObject(thread)) return { text, body: text, model: undefined }
    requireConversation(thread, name)
    const model = typeof thread.model === 'string' ? thread.model : undefined
    return { text, body: removeJsonField(text, 'model'), model }
  }

  let held: FileLock | undefined
  const open = async () => {
    if (!flags.dryRun && !flags.curl) {
      held = await acquireLock(target, { name, deadline, messages })
      cleanups.add(held.release)
    }
    return read()
  }
  const given = await convertFileErrors(name, open)
  const requireLock = () => held?.requireHeld()

  return {
    stored: given && { text: given.body, name },
    /**
     * Model of the last run, from the field `model` of the file. parley removes this field before it sends
     * the body.
     */
    model: given?.model,
    requireLock,
    unchangedNote: `${toOneLine(name)} ${given ? 'is unchanged' : 'was not created'}`,
    async addTurn({ question, answer, role, system, model }: Turn): Promise<void> {
      const notAdded = 'the answer was not added to the --thread file'
      const add = async () => {
        if (answer.trim() === '')
          return messages.note(`${name}: the answer has no text, so nothing was added`)
        const content = { role, parts: [{ text: answer }] }
        const turn = createListAppendAssignment(['contents'], JSON.stringify(content))
        const { text } = (await read()) ?? { text: '{"model":"","contents":[]}' }
        const assignments = [turn, createJsonAssignment(['model'], JSON.stringify(model))]
        const thread = buildRequestBody({ given: { text, name }, turn: question, system, assignments })
        // If this process was suspended, another process may have taken the lock and added turns. Then
        // `requireLock` throws, because writing would remove these turns.
        requireLock()
        writeFileAtomically(target, `${thread}\n`, { mode: 0o600, uid: context.host.uid })
      }
      try {
        await context.tracker.during({ onInterrupt: () => notAdded }, add)
      } catch (error) {
        const { message } = toFileFailure(error, name)
        const failure = new CliError('file', message, { sent: 'yes', consequence: notAdded })
        throw saveAnswerAfterFailure(context, failure, answer)
      } finally {
        held?.release()
      }
    },
  }
}

/**
 * Throws a `CliError` for JSON that is not a request body, such as a `package.json`. Otherwise parley would
 * add a turn to the file. Also throws if `model` is not a text, because parley would replace it.
 */
function requireConversation(thread: Record<string, unknown>, name: string): void {
  const fields = Object.keys(thread)
  const isBody = fields.some((field) =>
    /^(contents|system_?[iI]nstruction|generation_?[cC]onfig)$/.test(field),
  )
  const isModel = typeof (thread.model ?? '') === 'string'
  if ((isBody || fields.length === 0) && isModel) return
  const why = isBody ? 'its "model" is not a text' : 'it has no "contents"'
  throw new CliError('file', `${name}: it is not a conversation, because ${why}`)
}
