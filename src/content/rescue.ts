import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import { nameOf } from '../io/kept-part.ts'
import { createFile } from '../io/temporary-file.ts'

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
  const folder = host.env.TMPDIR || tmpdir()
  const path = join(folder, `parley-${crypto.randomUUID()}.${extension}`)
  const because = (outcome: string, kept?: string) =>
    new CliError(failure.kind, `${failure.message}; ${outcome}`, { ...failure.details, kept })
  try {
    await createFile(path, bytes, { mode: 0o600, cleanups })
    return because(`${what} is kept as ${path}`, path)
  } catch (error) {
    return because(`nor could it be kept in ${folder}: ${fileProblem(error)}`)
  }
}

/** The same of the text of an answer that was not printed, all of it or the part that came. */
export const rescueText = (context: Context, failure: CliError, text: string): Promise<CliError> =>
  rescue(context, failure, {
    bytes: Buffer.from(text),
    extension: 'txt',
    what: nameOf(failure),
  })
