import { closeSync, constants, fstatSync, openSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { CliError } from '../errors.ts'

/**
 * Opens a regular file, and no link; `name` is what messages call it. Throws what the file system throws, or a `CliError` if
 * it is of another kind.
 */
export function openRegular(path: string, name: string, flags: number, mode?: number): number {
  // These are not there on every system. A FIFO would be waited for.
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
  const file = openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, mode)
  try {
    const stat = fstatSync(file)
    // Windows opens a folder, too.
    const kind = stat.isDirectory() ? 'a folder' : 'not a regular file'
    if (!stat.isFile()) throw new CliError('file', `${name}: it is ${kind}`)
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

const readPiece = promisify(read)

/**
 * Reads an open file from its beginning, piece by piece. It stays open: a stream that is left early closes its file, and
 * maybe so late that the number is that of another file.
 */
export async function* readPieces(file: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await readPiece(file, Buffer.allocUnsafe(pieceSize), 0, pieceSize, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Bytes. */
const pieceSize = 256 * 1024
