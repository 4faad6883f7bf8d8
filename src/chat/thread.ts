import { existsSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, fileProblem, usage } from '../errors.ts'
import { buildBody, type Part } from '../generation/body.ts'
import { type FileOutput, openFileOutput } from '../io/file-output.ts'
import { decodeUtf8 } from '../io/utf8.ts'
import { type Lock, lock as lockFile } from '../settings/lock.ts'
import { appending } from '../wire/json/assignment.ts'

/** A conversation kept in a file of the request's own form. */
export interface Thread {
  /** What is in the file; `undefined` where it is not there or empty. */
  given: { text: string; name: string } | undefined
  /** Adds a question and its answer to what is in the file then, and to nothing else in it. */
  add(turns: { question: Part[]; answer: string; role: string }): Promise<void>
}

export interface ThreadOptions {
  /** `-o`: must be another file. */
  output: string | undefined
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
  /** The longest wait for another run that uses the file. Milliseconds. */
  patience: number
  /** Nothing will be added. */
  isPreview: boolean
}

/**
 * Opens a conversation for this run alone: another waits until this one's answer is in it, and so is asked with it.
 * Throws a `CliError` of kind `file` where it could not be read or written.
 */
export async function openThread(
  context: Context,
  name: string,
  { output, deadline, patience, isPreview }: ThreadOptions,
): Promise<Thread> {
  const { input, host, note, cleanups } = context
  const path = resolve(host.cwd, name)
  const target = realPath(path)
  if (output !== undefined && realPath(resolve(host.cwd, output)) === target)
    throw usage('-o and --thread name the same file')
  if (existsSync(path) && !statSync(path).isFile())
    throw new CliError('file', `${name}: it is no regular file`)
  // Checks the place before a lock is made beside it.
  await openFileOutput(name, host.cwd)

  const read = async () => {
    if (!existsSync(target)) return undefined
    const text = decodeUtf8(await input.file(target), name)
    return text.trim() === '' ? undefined : { text, name }
  }
  const takeLock = async () => {
    const onWait = () => note(`waiting for another parley that uses ${name}`)
    const lock = await lockFile(target, {
      longest: deadline > 0 ? deadline - Date.now() : patience,
      silence: 5000,
      kind: 'file',
      consequence: 'nothing was sent',
      onWait,
    })
    cleanups.add(lock.release)
    return lock
  }

  let lock: Lock | undefined
  if (!isPreview) lock = await named(name, takeLock)
  return {
    given: await read(),
    async add({ question, answer, role }) {
      // It came whole, and a signal must not say otherwise.
      context.whenInterrupted(() => 'the answer is not in the thread')
      try {
        if (answer.trim() === '') return note(`${name}: the answer has no text, so nothing was added`)
        // Asleep for long, a run may be taken for dead; its answer is added all the same.
        if (!lock?.isHeld()) lock = await takeLock()
        const turn = appending(['contents'], JSON.stringify({ role, parts: [{ text: answer }] }))
        const given = (await read()) ?? { text: '{"contents":[]}', name }
        const whole = await buildBody({ given, turn: question, assignments: [turn] })
        await replaceFile(await openFileOutput(name, host.cwd, 0o600), whole, cleanups)
      } catch (error) {
        const reason = error instanceof CliError ? error.message : `${name}: ${fileProblem(error)}`
        throw new CliError('file', reason, { sent: 'yes', consequence: 'the answer is not in the thread' })
      } finally {
        lock?.release()
      }
    },
  }
}

/** Where a link leads, if it leads anywhere. */
const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

async function replaceFile(file: FileOutput, bytes: Uint8Array, cleanups: Set<() => void>): Promise<void> {
  cleanups.add(file.discard)
  try {
    await file.write(bytes)
    await file.commit()
  } finally {
    file.discard()
    cleanups.delete(file.discard)
  }
}

async function named<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof CliError ? error : new CliError('file', `${name}: ${fileProblem(error)}`)
  }
}
