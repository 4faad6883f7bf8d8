import { constants } from 'node:fs'
import { access, mkdir, stat } from 'node:fs/promises'
import { dirname, extname, resolve } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, fileProblem, usage } from '../errors.ts'
import { createFile, findObstacle } from '../io/new-file.ts'
import { disagrees } from './format.ts'

/** Where images are put. */
export interface Place {
  /** How many it takes. */
  readonly capacity: number
  /** Puts one image there; returns its path as it is printed, if it has one. Throws a `CliError` of kind `file`. */
  put(bytes: Uint8Array, extension: string): Promise<string | undefined>
}

export interface PlaceOptions {
  /** `-o`: a file, a folder with a slash at its end, or `-`. */
  output: string | undefined
  /** For files that are not named by `-o`; without extension. */
  name: string
  replaces: boolean
}

/** Chooses the place, and throws a `CliError` where it is known now that nothing can be put there. */
export async function choosePlace(
  context: Context,
  { output, name, replaces }: PlaceOptions,
): Promise<Place> {
  if (output === '') throw usage('-o needs a file, a folder with a / at its end, or -')
  if (output === '-') return stdoutPlace(context)
  if (/[\r\n]/.test(output ?? '')) throw usage('-o must not have a line break: stdout has one path a line')
  if (output === undefined || output.endsWith('/')) return folderPlace(context, output ?? '', name, replaces)
  return filePlace(context, output, replaces)
}

function stdoutPlace({ output }: Context): Place {
  if (output.isTerminal) throw usage('-o - would write an image to the terminal: redirect it, or name a file')
  return {
    capacity: 1,
    async put(bytes) {
      await output.write(bytes)
      await output.flush()
      return undefined
    },
  }
}

/** Files with names of our own, each with the next number that is free. */
async function folderPlace(
  { host, cleanups }: Context,
  folder: string,
  name: string,
  replaces: boolean,
): Promise<Place> {
  const path = resolve(host.cwd, folder)
  await checked(folder || path, () => requireFolder(path, folder !== ''))
  let count = 0
  return {
    capacity: Infinity,
    put: (bytes, extension) =>
      checked(folder || path, async () => {
        await mkdir(path, { recursive: true })
        for (;;) {
          const file = `${numbered(name, ++count)}.${extension}`
          const target = resolve(path, file)
          if (await findObstacle(target, replaces)) continue
          if (await createFile(target, bytes, { replaces, cleanups })) return folder + file
        }
      }),
  }
}

/** The very file that was named; further images are numbered. */
async function filePlace({ host, note, cleanups }: Context, name: string, replaces: boolean): Promise<Place> {
  const check = async (file: string) => {
    const obstacle = await findObstacle(resolve(host.cwd, file), replaces)
    if (obstacle) throw new CliError('file', `${file}: ${obstacle}`)
  }
  await checked(name, async () => {
    await requireFolder(dirname(resolve(host.cwd, name)), false)
    await check(name)
  })
  const extension = extname(name)
  let count = 0
  return {
    capacity: Infinity,
    async put(bytes, kind) {
      const file = numbered(name.slice(0, name.length - extension.length), ++count) + extension
      if (disagrees(file, kind)) note(`${file}: the name stays, though the image is of the kind ${kind}`)
      return checked(file, async () => {
        await check(file)
        const isThere = await createFile(resolve(host.cwd, file), bytes, { replaces, cleanups })
        if (!isThere) throw new CliError('file', `${file}: it has appeared meanwhile, and is not overwritten`)
        return file
      })
    },
  }
}

const numbered = (name: string, count: number) => (count === 1 ? name : `${name}-${count}`)

/** Throws where a folder cannot be written to, or, if it may be made, the nearest one above it that exists. */
async function requireFolder(path: string, mayBeMade: boolean): Promise<void> {
  try {
    if (!(await stat(path)).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
    await access(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    if (!mayBeMade || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await requireFolder(dirname(path), true)
  }
}

async function checked<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof CliError ? error : new CliError('file', `${name}: ${fileProblem(error)}`)
  }
}
