import { existsSync } from 'node:fs'
import { buildBody, type MessagePart } from '../../content/body.ts'
import { saveAnswerAfterFailure } from '../../content/saved-answer.ts'
import type { Context } from '../../context.ts'
import { CliError, toFileFailure } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import { decodeUtf8 } from '../../io/file-content.ts'
import { writeFileAtomically } from '../../io/file-output.ts'
import { type FileLock, lock } from '../../io/lock.ts'
import { findOutputTarget, resolveRealPath } from '../../io/paths.ts'
import { createListEndAssignment } from '../../wire/json/edit.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { listChildren, skipBlanks } from '../../wire/json/scanner.ts'

interface Turn {
  question: MessagePart[]
  answer: string
  role: string
  /** Replaces the conversation's earlier instruction. */
  system: string | undefined
  model: string
}

/**
 * Opens the file of `--thread`, which contains a request body. Locks it, so that another run waits until this
 * run has added its answer. Throws a `CliError` of kind `file` if the file cannot be read or written.
 */
export async function openConversation(context: Context, name: string) {
  const { input, messages, cleanups, flags, deadline } = context
  const target = findThreadFile(context, name)

  const read = async () => {
    if (!existsSync(target)) return undefined
    const text = decodeUtf8(await input.readFile(target), name)
    if (text.trim() === '') return undefined
    const thread = tryParseJson(text)
    if (!isObject(thread)) return { text, model: undefined, name }
    requireConversation(thread, name)
    return { ...splitModel(text, thread), name }
  }

  let held: FileLock | undefined
  if (!flags.dryRun && !flags.curl) {
    held = await lock(target, { name, deadline, messages }).catch((error: unknown) => {
      throw toFileFailure(error, name)
    })
    cleanups.add(held.release)
  }
  const requireLock = () => held?.requireHeld()

  const given = await read()
  return {
    /** Content of the file, or `undefined` if the file is missing or empty. */
    stored: given,
    /** The model of the last run. parley stores this field in the file, but never sends it in a body. */
    model: given?.model,
    /** Throws a `CliError` if another run has taken over the lock of the file. */
    requireLock,
    /** Consequence for the message of a failure. */
    unchangedNote: `${oneLine(name)} ${given ? 'is unchanged' : 'was not created'}`,
    /**
     * Adds the question and the answer, and sets the model and the instruction. Other fields stay unchanged.
     */
    async addTurn({ question, answer, role, system, model }: Turn): Promise<void> {
      let isAdded = false
      const hooks = { onInterrupt: () => (isAdded ? undefined : 'the answer is not in the thread') }
      const add = async () => {
        if (answer.trim() === '')
          return messages.note(`${name}: the answer has no text, so nothing was added`)
        const turn = createListEndAssignment(
          ['contents'],
          JSON.stringify({ role, parts: [{ text: answer }] }),
        )
        const before = (await read()) ?? { text: '{"contents":[]}', name }
        const whole = await buildBody({ given: before, turn: question, system, assignments: [turn] })
        const thread = Buffer.concat([Buffer.from(`{"model":${JSON.stringify(model)},`), whole.subarray(1)])
        // If this process was suspended, it may have lost its lock, and another process may have added turns.
        requireLock()
        writeFileAtomically(target, thread, { mode: 0o600, uid: context.host.uid })
        isAdded = true
      }
      try {
        await context.tracker.during(hooks, add)
      } catch (error) {
        const failure = new CliError('file', toFileFailure(error, name).message, {
          sent: 'yes',
          consequence: 'the answer is not in the thread',
        })
        throw saveAnswerAfterFailure(context, failure, Buffer.from(answer), 'txt')
      } finally {
        held?.release()
      }
    },
  }
}

function splitModel(
  text: string,
  { model }: Record<string, unknown>,
): { text: string; model: string | undefined } {
  if (typeof model !== 'string') return { text, model: undefined }
  const start = skipBlanks(text, 0)
  const fields = [...listChildren(text, start)]
  const index = fields.findIndex(({ name }) => name === 'model')
  const { end } = fields[index] as { end: number }
  const before = fields[index - 1]?.end ?? start + 1
  const isFirstOfMany = index === 0 && fields.length > 1
  const after = isFirstOfMany ? text.indexOf(',', end) + 1 : end
  return { text: text.slice(0, before) + text.slice(after), model }
}

/**
 * Throws a `CliError` for JSON of another kind, such as a `package.json`, because adding a turn would change
 * the file.
 */
function requireConversation(thread: object, name: string): void {
  const fields = Object.keys(thread)
  const isBody = fields.some((field) => /^(contents|system_?instruction|generation_?config)$/i.test(field))
  if (isBody || fields.length === 0) return
  throw new CliError('file', `${name}: it is not a conversation, because it has no "contents"`, {
    consequence: 'nothing was sent',
  })
}

function findThreadFile({ host }: Context, name: string): string {
  const { path, isDirect } = findOutputTarget(host, name)
  if (isDirect) throw new CliError('file', `${name}: it is not a regular file`)
  return resolveRealPath(path)
}
