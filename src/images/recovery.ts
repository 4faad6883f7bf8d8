import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import { createFile } from '../io/new-file.ts'

export interface Kept {
  bytes: Uint8Array
  extension?: string | undefined
  /** As the message calls it. */
  what?: string | undefined
}

/**
 * Keeps what was paid for and has no place to go, in the temporary folder and for its owner's eyes only. Returns the
 * failure that made it necessary, with the path in its message.
 */
export async function keep(
  { host, cleanups }: Context,
  failure: CliError,
  { bytes, extension = 'bin', what = 'the image' }: Kept,
): Promise<CliError> {
  const folder = host.env.TMPDIR || tmpdir()
  const path = join(folder, `parley-${crypto.randomUUID()}.${extension}`)
  const because = (outcome: string) =>
    new CliError(failure.kind, `${failure.message}; ${outcome}`, failure.details)
  try {
    await createFile(path, bytes, { mode: 0o600, cleanups })
    return because(`${what} is kept as ${path}`)
  } catch (error) {
    return because(`nor could it be kept in ${folder}: ${fileProblem(error)}`)
  }
}
