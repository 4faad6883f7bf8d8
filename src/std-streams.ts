import {
  constants,
  fstatSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hasCode } from './errors.ts'
import type { Stdin } from './io/input.ts'
import type { StdStream } from './io/output.ts'
import { removeSignalHandlers } from './signals.ts'

export function createStdStream(descriptor: 1 | 2, openStream: () => NodeJS.WriteStream): StdStream {
  let stream: NodeJS.WriteStream | undefined
  let isOnTerminal: boolean | undefined
  const open = () => {
    stream ??= writeWholeChunks(makeNonBlocking(openStream()), descriptor)
    return stream
  }
  return {
    get isTerminal() {
      isOnTerminal ??= isTerminal(descriptor)
      return isOnTerminal
    },
    get file() {
      return findFilePath(descriptor)
    },
    get isClosed() {
      return wasClosed(descriptor)
    },
    get columns() {
      return this.isTerminal ? open().columns : undefined
    },
    get rows() {
      return this.isTerminal ? open().rows : undefined
    },
    open,
    writeSync(bytes) {
      // If this returns 0, the caller writes to the stream. A Windows console decodes bytes by its code page,
      // so only the stream can write text there. Process 1 of a container ends at a signal only if it has a
      // handler. So process 1 keeps its signal handlers and writes to the non-blocking stream.
      if (stream || process.pid === 1 || (process.platform === 'win32' && this.isTerminal)) return 0
      // The last write of a run may block, so from now on a signal ends the process at once.
      removeSignalHandlers()
      return writeAll(descriptor, bytes)
    },
  }
}

/** A blocking write would delay signal handlers while nobody reads. */
function makeNonBlocking(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const { _handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  if (stream.isTTY && process.platform !== 'win32') _handle?.setBlocking?.(false)
  return stream
}

/** Node counts a chunk as written even if a full disk accepted only a part of it. */
function writeWholeChunks(stream: NodeJS.WriteStream, descriptor: number): NodeJS.WriteStream {
  if (!fstatSync(descriptor).isFile()) return stream
  stream._write = (chunk: Uint8Array, _encoding, done) => {
    try {
      writeFileSync(descriptor, chunk)
      done()
    } catch (error) {
      done(error as Error)
    }
  }
  return stream
}

function writeAll(descriptor: number, bytes: Uint8Array): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(descriptor, bytes.subarray(written))
  } catch (error) {
    // Another process may have made the shared pipe non-blocking. The caller writes the other bytes through
    // the stream.
    if (!hasCode(error, 'EAGAIN')) throw error
  }
  return written
}

/** Does not open the stream. Loads Node's terminal module only if the descriptor may be a terminal. */
function isTerminal(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isCharacterDevice() || isNull(stat)) return false
    return process.getBuiltinModule('node:tty').isatty(descriptor)
  } catch {
    return false
  }
}

/** Returns false on Windows, which does not number devices. */
const isNull = ({ rdev }: Stats): boolean =>
  process.platform !== 'win32' && rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev

/**
 * Returns whether the descriptor was closed when the process started. Node then opens /dev/null for reading
 * and writing, but a shell's redirection opens /dev/null only for one of the two. Only Linux shows the
 * difference.
 */
function wasClosed(descriptor: number): boolean {
  try {
    if (!isNull(fstatSync(descriptor))) return false
    const [, flags = ''] =
      /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')) ?? []
    return (Number.parseInt(flags, 8) & constants.O_RDWR) !== 0
  } catch {
    return false
  }
}

export function findFilePath(descriptor: number): string | undefined {
  try {
    return fstatSync(descriptor).isFile() ? realpathSync(`/dev/fd/${descriptor}`) : undefined
  } catch {
    return undefined
  }
}

export function findStdinKind(): Stdin['kind'] {
  try {
    const stat = fstatSync(0)
    // On Windows `isFIFO` is always false, so the mode is read.
    const isPipe = (stat.mode & constants.S_IFMT) === constants.S_IFIFO
    if (isPipe || stat.isSocket()) return 'pipe'
    if (stat.isFile()) return 'file'
    if (stat.isDirectory()) return 'folder'
    return isTerminal(0) ? 'terminal' : 'none'
  } catch {
    return 'none'
  }
}
