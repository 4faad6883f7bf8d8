import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import type { KeptPart } from '../io/file-output.ts'
import { createFile, replaceFileNow } from '../io/temporary-file.ts'

export interface Rescued {
  bytes: Uint8Array
  extension?: string
  /** Its name in the message. */
  what?: string
}

/**
 * Keeps in the temporary folder, readable by its owner alone, what was paid for and could not be saved. Returns the
 * failure that made this necessary, with the path in its message.
 */
export async function rescue(
  { host, cleanups }: Context,
  failure: CliError,
  { bytes, extension = 'bin', what = 'the image' }: Rescued,
): Promise<CliError> {
  const path = newPath(host, extension)
  const because = (outcome: string, kept?: string) =>
    new CliError(failure.kind, `${failure.message}; ${outcome}`, { ...failure.details, kept })
  try {
    await createFile(path, bytes, { mode: 0o600, cleanups })
    return because(`${what} is kept as ${path}`, path)
  } catch (error) {
    return because(`nor could it be kept in ${dirname(path)}: ${fileProblem(error)}`)
  }
}

/**
 * Keeps there the text of an answer that was not printed, all of it or the part that came; nothing if it is blank. Does not
 * throw and is synchronous, so that a signal can call it.
 */
export function keepText({ host }: Pick<Context, 'host'>, text: string): KeptPart | undefined {
  if (text.trim() === '') return undefined
  const path = newPath(host, 'txt')
  try {
    replaceFileNow(path, text, 0o600)
    return { outcome: `is kept as ${path}`, name: path }
  } catch (error) {
    return { outcome: `could not be kept in ${dirname(path)}: ${fileProblem(error)}` }
  }
}

const newPath = ({ env }: Context['host'], extension: string): string =>
  join(env.TMPDIR || tmpdir(), `parley-${crypto.randomUUID()}.${extension}`)
