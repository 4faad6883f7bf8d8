import { fstatSync, writeSync } from 'node:fs'
import type { Host } from './context.ts'
import type { Stdin } from './terminal/input.ts'
import type { Stdout } from './terminal/output.ts'

/** The process as a host. Its streams are opened when they are first used. */
export function createProcessHost(): Host {
  // Node's own warnings would stand beside ours, and break the one line of `--errors json`.
  process.removeAllListeners('warning')
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
      setRaw: (isRaw) => void process.stdin.setRawMode(isRaw),
      interrupt: () => void process.kill(process.pid, 'SIGINT'),
    },
    stdout: outlet(1, () => process.stdout),
    // What was to be said there is lost, but the run goes on.
    stderr: outlet(2, () => process.stderr.on('error', () => {})),
    onSignal,
    onCrash,
  }
}

function outlet(descriptor: 1 | 2, openStream: () => NodeJS.WriteStream): Stdout {
  let stream: NodeJS.WriteStream | undefined
  let isOnTerminal: boolean | undefined
  const open = () => {
    stream ??= openStream()
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
function onSignal(clean: () => string): void {
  for (const signal of signals) {
    process.once(signal, () => {
      for (const each of signals) process.removeAllListeners(each)
      try {
        // As a stream, a pipe that is full does not let this wait.
        process.stderr.on('error', () => {})
        writeSync(2, clean())
      } catch {
        // A stderr that is gone must not keep the signal from its work.
      }
      process.kill(process.pid, signal)
    })
  }
}

function onCrash(report: (error: unknown) => Promise<number>): void {
  process.on('uncaughtException', async (error) => process.exit(await report(error)))
}
