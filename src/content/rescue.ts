import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, describeFileError } from '../errors.ts'
import { type SavedPart, withSavedPart } from '../io/file-output.ts'
import { writeFileAtomically } from '../io/temporary-file.ts'

/** Saves paid data in the temporary folder. Returns the failure with the path. */
export function rescue(
  { host }: Pick<Context, 'host'>,
  failure: CliError,
  bytes: Uint8Array,
  extension = 'bin',
): CliError {
  const part = keep(host, bytes, extension)
  const rescued = withSavedPart(failure, part)
  if (part.name !== undefined || failure.details.answer !== undefined || bytes.length > longestInFailure)
    return rescued
  const encoding = ['json', 'txt'].includes(extension) ? 'utf8' : 'base64'
  return rescued.with({
    answer: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(encoding),
  })
}

/** The longest answer that a failure can have, in bytes: the failure becomes one line of JSON. */
const longestInFailure = 64 * 1024 * 1024

/** Keeps there the text of an answer that was not printed, all of it or the part that came; nothing if it is blank. */
export const keepText = ({ host }: Pick<Context, 'host'>, text: string): SavedPart | undefined =>
  text.trim() === '' ? undefined : keep(host, text, 'txt')

/** Its owner alone can read the file. Does not throw and is synchronous, so that a signal can call it. */
function keep({ env }: Context['host'], content: Uint8Array | string, extension: string): SavedPart {
  const path = join(env.TMPDIR || tmpdir(), `parley-${crypto.randomUUID()}.${extension}`)
  try {
    writeFileAtomically(path, content, { mode: 0o600 })
    return { outcome: `is saved as ${path}`, name: path }
  } catch (error) {
    return { outcome: `could not be saved in ${dirname(path)}: ${describeFileError(error)}` }
  }
}
