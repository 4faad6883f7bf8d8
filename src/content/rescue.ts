import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, fileProblem } from '../errors.ts'
import { type KeptPart, withPart } from '../io/file-output.ts'
import { writeWhole } from '../io/temporary-file.ts'

/** Keeps in the temporary folder what was paid for and could not be saved. Returns the failure, which then says where. */
export const rescue = (
  { host }: Context,
  failure: CliError,
  bytes: Uint8Array,
  extension = 'bin',
): CliError => withPart(failure, keep(host, bytes, extension))

/** Keeps there the text of an answer that was not printed, all of it or the part that came; nothing if it is blank. */
export const keepText = ({ host }: Pick<Context, 'host'>, text: string): KeptPart | undefined =>
  text.trim() === '' ? undefined : keep(host, text, 'txt')

/** Its owner alone can read the file. Does not throw and is synchronous, so that a signal can call it. */
function keep({ env }: Context['host'], content: Uint8Array | string, extension: string): KeptPart {
  const path = join(env.TMPDIR || tmpdir(), `parley-${crypto.randomUUID()}.${extension}`)
  try {
    writeWhole(path, content, { mode: 0o600 })
    return { outcome: `is kept as ${path}`, name: path }
  } catch (error) {
    return { outcome: `could not be kept in ${dirname(path)}: ${fileProblem(error)}` }
  }
}
