import { isUtf8 } from 'node:buffer'
import { fstatSync, readFileSync, writeSync } from 'node:fs'
import type { Host } from './context.ts'
import { usage } from './errors.ts'
import type { Stdin } from './io/input.ts'
import type { StdStream } from './io/output.ts'

/** The process as a host. Its streams are opened when they are first used. */
export function createProcessHost(): Host {
  // Node's own warnings would stand beside ours, and break the one line of `--errors json`.
  process.removeAllListeners('warning')
  // What was to be said there is lost, but the run goes on.
  const stderr = createStdStream(2, () => process.stderr.on('error', () => {}))
  return {
    env: process.env,
    get cwd() {
      return process.cwd()
    },
    platform: process.platform,
    uid: process.getuid?.(),
    stdin: {
      get kind() {
        return stdinKind()
      },
      open: () => process.stdin,
      isLive: true,
      setRaw: (isRaw) => void process.stdin.setRawMode(isRaw),
      interrupt: () => void process.kill(process.pid, 'SIGINT'),
      ...(process.platform === 'win32' ? {} : { suspend }),
    },
    stdout: createStdStream(1, () => process.stdout),
    stderr,
    checkArguments,
    onSignal: (clean) => onSignal(clean, stderr),
    onCrash,
  }
}

/** Stops the whole job, as a terminal does; one that no shell could wake is not stopped. */
function suspend(): Promise<void> {
  return new Promise((resolve) => {
    const goOn = () => {
      clearTimeout(timer)
      process.off('SIGCONT', goOn)
      resolve()
    }
    const timer = setTimeout(goOn, 200)
    process.once('SIGCONT', goOn)
    process.kill(0, 'SIGTSTP')
  })
}

/** Node has put U+FFFD in the place of bytes that are not UTF-8: what would be sent is not what was given. */
function checkArguments(argv: string[]): void {
  const suspect = argv.findIndex((word) => word.includes('\ufffd'))
  if (suspect < 0) return
  const spelled = readArguments()?.slice(-argv.length)
  const wrong = spelled ? spelled.findIndex((bytes) => !isUtf8(bytes)) : suspect
  if (wrong >= 0) throw usage(`argument ${wrong + 1} is not UTF-8: ${argv[wrong]}`)
}

/** The bytes of this process's arguments, where the system shows them. */
function readArguments(): Buffer[] | undefined {
  try {
    const words = readFileSync('/proc/self/cmdline', 'latin1').split('\0').slice(0, -1)
    return words.map((word) => Buffer.from(word, 'latin1'))
  } catch {
    return undefined
  }
}

function createStdStream(descriptor: 1 | 2, openStream: () => NodeJS.WriteStream): StdStream {
  let stream: NodeJS.WriteStream | undefined
  let isOnTerminal: boolean | undefined
  const open = () => {
    stream ??= neverBlocking(openStream())
    return stream
  }
  return {
    get isTerminal() {
      isOnTerminal ??= isTerminal(descriptor)
      return isOnTerminal
    },
    get columns() {
      return this.isTerminal ? open().columns : undefined
    },
    open,
    writeNow(bytes) {
      if (stream) return 0
      // These are a run's last words: a signal ends them at once, also where their reader lets them wait.
      for (const signal of signals) process.removeAllListeners(signal)
      return writeAll(descriptor, bytes)
    },
  }
}

/** Node writes to a terminal at once and waits for it: while nobody reads there, no signal would be heard. */
function neverBlocking(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const { _handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  if (stream.isTTY && process.platform !== 'win32') _handle?.setBlocking?.(false)
  return stream
}

function writeAll(descriptor: number, bytes: Uint8Array): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(descriptor, bytes.subarray(written))
  } catch (error) {
    // Whoever shares the pipe may have made it one that does not wait.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
  return written
}

/** Without opening what is there, and for most kinds of it without loading what knows terminals. */
function isTerminal(descriptor: number): boolean {
  try {
    return (
      fstatSync(descriptor).isCharacterDevice() && process.getBuiltinModule('node:tty').isatty(descriptor)
    )
  } catch {
    return false
  }
}

function stdinKind(): Stdin['kind'] {
  try {
    const stat = fstatSync(0)
    if (stat.isFIFO() || stat.isSocket()) return 'pipe'
    if (stat.isFile()) return 'file'
    if (stat.isDirectory()) return 'folder'
    return isTerminal(0) ? 'terminal' : 'none'
  } catch {
    return 'none'
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** The process dies by the very signal, so that a shell's loop stops too; a second signal ends it at once. */
function onSignal(clean: () => string, stderr: StdStream): void {
  for (const signal of signals) {
    process.once(signal, () => {
      for (const each of signals) process.removeAllListeners(each)
      try {
        // As a stream, what is full does not let this wait.
        stderr.open()
        writeSync(2, clean())
      } catch {
        // A stderr that is gone must not keep the signal from its work.
      }
      process.kill(process.pid, signal)
    })
  }
}

function onCrash(report: (error: unknown) => Promise<number>): void {
  process.on('uncaughtException', async (error) => process.exit(await report(error).catch(() => 1)))
}
