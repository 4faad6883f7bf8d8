import { constants, promises as fs } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CliError, fileProblem, usage } from '../errors.ts'
import type { Output } from './output.ts'

/** A file that takes an answer: `FILE.part` until it is whole. */
export interface FileOutput extends Output {
  /** Puts the whole answer in the place of what was there. */
  commit(): Promise<void>
}

/**
 * Makes ready to write a file, without touching it: throws a `CliError` of kind `file` where it could not be
 * written. A device or a pipe is written directly, and a link leads to its target. A file keeps its mode; a new
 * one gets `mode`, by default that of any new file.
 */
export async function openFileOutput(name: string, cwd: string, mode?: number): Promise<FileOutput> {
  if (name === '') throw usage('a file must have a name')
  const wrap = (error: unknown) => new CliError('file', `${name}: ${fileProblem(error)}`)
  const path = resolve(cwd, name)
  const target = await fs.realpath(path).catch(() => path)
  const existing = await fs.stat(target).catch(() => undefined)
  if (existing?.isDirectory() || name.endsWith('/')) throw new CliError('file', `${name}: it is a folder`)
  const isRegular = existing === undefined || existing.isFile()
  const part = isRegular ? `${target}.part` : target
  await fs.access(isRegular ? dirname(target) : target, constants.W_OK).catch((error) => {
    throw wrap(error)
  })

  let file: FileHandle | undefined
  async function start(): Promise<FileHandle> {
    const kept = isRegular ? (existing?.mode ?? mode) : undefined
    const started = await fs.open(part, 'w', kept)
    // The umask, or a part that was left there, may have had its own way.
    if (kept !== undefined) await started.chmod(kept & 0o7777)
    return started
  }

  return {
    isTerminal: false,
    async write(chunk) {
      try {
        file ??= await start()
        await file.writeFile(chunk)
      } catch (error) {
        await file?.close().catch(() => {})
        throw wrap(error)
      }
    },
    async flush() {},
    async commit() {
      try {
        file ??= await start()
        await file.close()
        if (isRegular) await fs.rename(part, target)
      } catch (error) {
        throw wrap(error)
      }
    },
  }
}
