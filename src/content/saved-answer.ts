import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, describeFileError } from '../errors.ts'
import { addSavedPart, type FileOutput, type SavedPart } from '../io/file-output.ts'
import { writeFileAtomically } from '../io/temporary-file.ts'

/**
 * Saves a paid answer after a failure: next to `file`, its output file, otherwise in the temporary folder.
 * Returns the failure with the name of the saved file. If saving also fails, the returned failure contains the
 * answer itself (images in base64).
 */
export function saveAnswerAfterFailure(
  { host }: Pick<Context, 'host'>,
  failure: CliError,
  bytes: Uint8Array,
  extension = 'bin',
  file?: Pick<FileOutput, 'savePart'>,
): CliError {
  const part = file?.savePart(bytes)
  return addSavedPart(
    failure,
    part?.name === undefined ? saveInTemporaryFolder({ host }, bytes, extension) : part,
  )
}

/** `--errors json` prints the failure as one line. */
const maxBytesInFailure = 64 * 1024 * 1024

export const saveText = ({ host }: Pick<Context, 'host'>, text: string): SavedPart | undefined =>
  text.trim() === '' ? undefined : saveInTemporaryFolder({ host }, text, 'txt')

export const createSavedPath = ({ env }: Pick<Context['host'], 'env'>, extension: string): string =>
  join(env.TMPDIR || tmpdir(), `parley-${crypto.randomUUID()}.${extension}`)

/** The file is readable by its owner only. Does not throw. Synchronous, because signal handlers call it. */
export function saveInTemporaryFolder(
  { host }: Pick<Context, 'host'>,
  content: Uint8Array | string,
  extension: string,
): SavedPart {
  const path = createSavedPath(host, extension)
  try {
    writeFileAtomically(path, content, { mode: 0o600 })
    return { outcome: `is saved as ${path}`, name: path }
  } catch (error) {
    const outcome = `could not be saved in ${dirname(path)}: ${describeFileError(error)}`
    return { outcome, unsaved: content.length > maxBytesInFailure ? undefined : toText(content, extension) }
  }
}

function toText(content: Uint8Array | string, extension: string): string {
  if (typeof content === 'string') return content
  const { buffer, byteOffset, length } = content
  return Buffer.from(buffer, byteOffset, length).toString(
    ['json', 'txt'].includes(extension) ? 'utf8' : 'base64',
  )
}
