import { promises as fs, statSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import type { Context } from '../../context.ts'
import { CliError, convertFileErrors, hasErrorCode, toFileFailure, usageError } from '../../errors.ts'
import { type FileOutput, openFileOutput, TemporaryFile, writeFileAtomically } from '../../io/file-output.ts'
import { endsInSeparator, findOutputTarget, findReplacementProblem, toAbsolutePath } from '../../io/paths.ts'
import { escapeShellWord } from '../../io/shell-quote.ts'
import type { Timers } from '../../timers.ts'

export interface ImageDestination {
  readonly maxImages?: number
  readonly file?: FileOutput
  /**
   * Saves an image. Returns the path for printing, or `undefined` if the image was written to stdout.
   * Throws a `CliError` of kind `file`.
   */
  save(bytes: Uint8Array, extension: string): Promise<string | undefined>
}

/**
 * `output` is the value of `-o`: a file, a folder with a slash at its end, or `-`. In a folder, `fileStem` is
 * the name of the files without number and extension.
 */
export async function openImageDestination(
  context: Context,
  { output, fileStem, replaces }: { output: string | undefined; fileStem: string; replaces: boolean },
): Promise<ImageDestination> {
  if (output === '-') return createStdoutDestination(context)
  if (/[\r\n]/.test(output ?? ''))
    throw usageError('-o must not have a line break: stdout has one path per line')
  if (output === undefined || endsInSeparator(output, context.host.platform))
    return createFolderDestination(context, output ?? '', fileStem, replaces)
  return createFileDestination(context, output, replaces)
}

function createStdoutDestination({ output }: Context): ImageDestination {
  if (output.isTerminal)
    throw usageError('-o - would write an image to the terminal: redirect stdout, or name a file')
  return {
    maxImages: 1,
    async save(bytes) {
      await output.write(bytes)
      await output.flush()
      return undefined
    },
  }
}

function createFolderDestination(context: Context, folder: string, fileStem: string, replaces: boolean) {
  const path = toAbsolutePath(context.host, folder || '.')
  const label = folder || path
  try {
    requireFolder(path, folder !== '')
  } catch (error) {
    throw toFileFailure(error, label)
  }
  const create = createNumberedFiles(context, { replaces, isNamed: false })
  return {
    async save(bytes: Uint8Array, extension: string) {
      await convertFileErrors(label, () => fs.mkdir(path, { recursive: true }))
      return create(bytes, folder + fileStem, `.${extension}`)
    },
  }
}

async function createFileDestination(context: Context, name: string, replaces: boolean) {
  const folderHint = `-o ${escapeShellWord(`${name}/`)} saves images in it`
  findOutputTarget(context.host, name, { replaces, isRegular: true, folderHint })
  const extension = extname(name)
  const stem = name.slice(0, name.length - extension.length)
  const create = createNumberedFiles(context, { replaces, isNamed: true })
  const file = await openFileOutput(name, context)
  return { file, save: (bytes: Uint8Array) => create(bytes, stem, extension) }
}

/**
 * Returns a function that creates a file under the next free number and returns its name, such as `cat.png`
 * and then `cat-2.png`. With `replaces`, only the first name may replace a file, because users cannot predict
 * the number of images. With `isNamed`, the first name is the name that the user gave. If this file exists,
 * the function throws a `CliError` instead of using the next number.
 */
function createNumberedFiles(
  { host }: Context,
  { replaces, isNamed }: { replaces: boolean; isNamed: boolean },
) {
  let next = 1
  return async (bytes: Uint8Array, stem: string, extension: string): Promise<string> => {
    for (;;) {
      const number = next++
      const name = `${stem}${number === 1 ? '' : `-${number}`}${extension}`
      const target = toAbsolutePath(host, name)
      const options = { replaces: replaces && number === 1, uid: host.uid }
      const create = async () =>
        !findReplacementProblem(target, host.uid, options.replaces) &&
        writeFileAtomically(target, bytes, options)
      if (await convertFileErrors(name, () => retryWhileOutOfDescriptors(host.timers, create))) return name
      if (isNamed && number === 1)
        throw new CliError('file', `${name}: it was created meanwhile, so parley does not overwrite it`)
    }
  }
}

/**
 * Throws if no file can be created in the folder. With `canBeCreated`, a missing folder passes if a file
 * can be created in its nearest existing parent.
 */
function requireFolder(path: string, canBeCreated: boolean): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  const above = dirname(path)
  // The root of a missing Windows drive is its own parent, so the search ends there.
  if (!stat && canBeCreated && above !== path) requireFolder(above, true)
  else if (!stat?.isDirectory()) throw Object.assign(new Error(), { code: stat ? 'ENOTDIR' : 'ENOENT' })
  else new TemporaryFile(join(path, 'image')).remove()
}

const maxRetries = 100

/** Retries while no file descriptor is free, because the requests of a batch may hold all of them. */
async function retryWhileOutOfDescriptors<T>(timers: Timers, work: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await work()
    } catch (error) {
      if (retries === maxRetries || !hasErrorCode(error, 'EMFILE', 'ENFILE')) throw error
      await timers.wait(100)
    }
  }
}
