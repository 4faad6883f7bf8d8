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
import { stopListening } from './signals.ts'

/** Creates stdout or stderr. `openStream` is called on first use. */
export function createStdStream(descriptor: 1 | 2, openStream: () => NodeJS.WriteStream): StdStream {
  let stream: NodeJS.WriteStream | undefined
  let isOnTerminal: boolean | undefined
  const open = () => {
    stream ??= writingWhole(neverBlocking(openStream()), descriptor)
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
      // A Windows console would decode bytes by its code page, so only the stream writes text there. The
      // first process of a container dies only by signals that it listens to.
      if (stream || process.pid === 1 || (process.platform === 'win32' && this.isTerminal)) return 0
      // This is the last write of a run. It may block, and then a signal must end it at once.
      stopListening()
      return writeAll(descriptor, bytes)
    },
  }
}

/** Node's writes to a terminal block: a signal would not be handled while nobody reads. */
function neverBlocking(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const { _handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  if (stream.isTTY && process.platform !== 'win32') _handle?.setBlocking?.(false)
  return stream
}

/** Node counts a chunk as written if a full disk took a part of it. */
function writingWhole(stream: NodeJS.WriteStream, descriptor: number): NodeJS.WriteStream {
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
    // Another process may have made the shared pipe non-blocking.
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

/** /dev/null is the most common device without input or reader. Windows does not number devices. */
const isNull = ({ rdev }: Stats): boolean =>
  process.platform !== 'win32' && rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev

/**
 * Node opens /dev/null in the place of a descriptor that was closed when it started, and for reading too, as a shell's
 * redirection does not. Elsewhere than on Linux nobody says how it was opened.
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

/** The real path of a regular file, if the system tells it. */
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
    // On Windows `isFIFO` is always false, whatever the mode says.
    const isPipe = (stat.mode & constants.S_IFMT) === constants.S_IFIFO
    if (isPipe || stat.isSocket()) return 'pipe'
    if (stat.isFile()) return 'file'
    if (stat.isDirectory()) return 'folder'
    return isTerminal(0) ? 'terminal' : 'none'
  } catch {
    return 'none'
  }
}
