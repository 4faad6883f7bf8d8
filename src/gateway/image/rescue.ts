import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import { CliError, fileProblem } from '../../errors.ts'
import { createFile } from '../../io/temporary-file.ts'

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
  const because = (outcome: string) =>
    new CliError(failure.kind, `${failure.message}; ${outcome}`, failure.details)
  try {
    await createFile(path, bytes, { mode: 0o600, cleanups })
    return because(`${what} is kept as ${path}`)
  } catch (error) {
    return because(`nor could it be kept in ${folder}: ${fileProblem(error)}`)
  }
}
