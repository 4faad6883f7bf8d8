import { constants } from 'node:fs'
import { access, type FileHandle, open, realpath, rename, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CliError, fileProblem } from '../errors.ts'
import type { Output } from './output.ts'

/** A file that takes an answer: `FILE.part` until it is whole. */
export interface FileOutput extends Output {
  /** Puts the whole answer in the place of what was there. */
  commit(): Promise<void>
}

/**
 * Makes ready to write a file, without touching it: throws a `CliError` of kind `file` where it could not be
 * written. A device or a pipe is written directly.
 */
export async function openFileOutput(name: string, cwd: string): Promise<FileOutput> {
  const wrap = (error: unknown) => new CliError('file', `${name}: ${fileProblem(error)}`)
  const path = resolve(cwd, name)
  const target = await realpath(path).catch(() => path)
  const existing = await stat(target).catch(() => undefined)
  if (existing?.isDirectory()) throw new CliError('file', `${name}: it is a folder`)
  const isRegular = existing === undefined || existing.isFile()
  const part = isRegular ? `${target}.part` : target
  await access(isRegular ? dirname(target) : target, constants.W_OK).catch((error) => {
    throw wrap(error)
  })

  let file: FileHandle | undefined
  return {
    isTerminal: false,
    async write(chunk) {
      try {
        file ??= await open(part, 'w')
        await file.writeFile(chunk)
      } catch (error) {
        throw wrap(error)
      }
    },
    async flush() {},
    async commit() {
      try {
        file ??= await open(part, 'w')
        await file.close()
        if (isRegular) await rename(part, target)
      } catch (error) {
        throw wrap(error)
      }
    },
  }
}
