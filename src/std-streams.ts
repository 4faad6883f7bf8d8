import { constants, fstatSync, readFileSync, type Stats, statSync, writeFileSync, writeSync } from 'node:fs'
import type { Stdin, StdStream } from './basic-context.ts'
import { hasErrorCode } from './errors.ts'
import { removeSignalHandlers } from './signals.ts'

export function createStdStream(descriptor: 1 | 2, openStream: () => NodeJS.WriteStream): StdStream {
  let stream: NodeJS.WriteStream | undefined
  let isOnTerminal: boolean | undefined
  const open = () => {
    stream ??= makeNonBlocking(openStream())
    return stream
  }
  return {
    get isTerminal() {
      isOnTerminal ??= isTerminal(descriptor)
      return isOnTerminal
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
    get writeWhole() {
      // If a full disk accepts only a part of a chunk, Node's stream reports no error. So parley itself
      // writes to files and to devices that are not terminals.
      const stat = fstatSync(descriptor)
      if (!stat.isFile() && (!stat.isCharacterDevice() || this.isTerminal)) return undefined
      return (chunk: Uint8Array | string) => writeFileSync(descriptor, chunk)
    },
    writeSync(bytes) {
      // A Windows console shows all text correctly only if the stream writes it. In the first process of a
      // container, a signal has no effect without a handler. This function removes the handlers, so a signal
      // could not end a blocked write there.
      if (stream || process.pid === 1 || (process.platform === 'win32' && this.isTerminal)) return 0
      // This last write may block, so the next signal must end the process at once.
      removeSignalHandlers()
      return writeAll(descriptor, bytes)
    },
  }
}

/** While nobody reads, a blocking write would delay signal handlers. */
function makeNonBlocking(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const { _handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  if (stream.isTTY && process.platform !== 'win32') _handle?.setBlocking?.(false)
  return stream
}

function writeAll(descriptor: number, bytes: Uint8Array): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(descriptor, bytes.subarray(written))
  } catch (error) {
    // EAGAIN means that another process made the shared pipe non-blocking. The caller then writes the rest
    // through the stream.
    if (!hasErrorCode(error, 'EAGAIN')) throw error
  }
  return written
}

/**
 * Examines the descriptor, because opening a stream takes time. Loads Node's terminal module only if the
 * descriptor may be a terminal.
 */
function isTerminal(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isCharacterDevice() || isNull(stat)) return false
    return process.getBuiltinModule('node:tty').isatty(descriptor)
  } catch {
    return false
  }
}

/** Windows does not number devices, so /dev/null cannot be recognized there. */
const isNull = ({ rdev }: Stats): boolean =>
  process.platform !== 'win32' && rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev

/**
 * If the descriptor was closed at the start, Node opened /dev/null for reading and writing. A shell opens
 * /dev/null only for reading or only for writing. Only Linux shows the difference.
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

export function findStdinKind(): Stdin['kind'] {
  try {
    const stat = fstatSync(0)
    // On Windows, `isFIFO` is always false, so the mode is compared.
    const isPipe = (stat.mode & constants.S_IFMT) === constants.S_IFIFO
    if (isPipe || stat.isSocket()) return 'pipe'
    if (stat.isFile()) return 'file'
    if (stat.isDirectory()) return 'folder'
    return isTerminal(0) ? 'terminal' : 'none'
  } catch {
    return 'none'
  }
}
