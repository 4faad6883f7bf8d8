import { fstatSync, writeSync } from 'node:fs'
import type { Host } from './context.ts'
import type { Stdin } from './terminal/input.ts'

/** The process as a host. Its streams are opened when they are first used. */
export function createProcessHost(): Host {
  // Node's own warnings would stand beside ours, and break the one line of `--errors json`.
  process.removeAllListeners('warning')
  let stderr: NodeJS.WriteStream | undefined
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
    get stdout() {
      return process.stdout
    },
    get stderr() {
      // What was to be said there is lost, but the run goes on.
      stderr ??= process.stderr.on('error', () => {})
      return stderr
    },
    onSignal,
    onCrash,
  }
}

function stdinKind(): Stdin['kind'] {
  try {
    const stat = fstatSync(0)
    if (stat.isFIFO() || stat.isSocket()) return 'pipe'
    if (stat.isFile()) return 'file'
    if (stat.isDirectory()) return 'folder'
    return process.stdin.isTTY ? 'terminal' : 'none'
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
