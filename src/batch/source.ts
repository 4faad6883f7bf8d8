import { createReadStream, promises as fs } from 'node:fs'
import type { Context } from '../context.ts'
import { asFileFailure, CliError, usage } from '../errors.ts'
import { absolutePath } from '../io/paths.ts'

/** A batch's input. */
export interface Source {
  /** For messages. */
  name: string
  /** It can be read again, and so is checked before anything is sent. */
  isRepeatable: boolean
  read(): AsyncIterable<Uint8Array>
  /** Nothing more is read: a silent pipe does not keep the process running. */
  close(): void
}

/** Opens a file, or stdin for `-`. Throws a `CliError`. */
export async function openSource({ input, host }: Context, name: string): Promise<Source> {
  if (name === '') throw usage('--batch needs a file, or - for stdin')
  if (name === '-') {
    if (input.stdinKind === 'terminal') throw usage('--batch -: stdin is a terminal; give a file or a pipe')
    const close = () => void host.stdin.open().destroy()
    return { name: 'stdin', isRepeatable: false, read: () => input.stdinChunks('--batch -'), close }
  }
  const path = absolutePath(host, name)
  try {
    const stat = await fs.stat(path)
    if (stat.isDirectory()) throw new CliError('file', `${name}: it is a folder`)
    await fs.access(path, fs.constants.R_OK)
    return { name, isRepeatable: stat.isFile(), read: () => readFile(path, name), close() {} }
  } catch (error) {
    throw asFileFailure(error, name)
  }
}

async function* readFile(path: string, name: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: 256 * 1024 })
  } catch (error) {
    throw asFileFailure(error, name)
  }
}
