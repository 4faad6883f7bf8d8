import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import type { BasicContext, Host } from './basic-context.ts'
import { CliError, describeFileError, usageError } from './errors.ts'
import {
  endProcessOnSignal,
  exitProcessAfter,
  interceptInterrupt,
  interruptProcess,
  reportBugs,
  suspendProcess,
} from './signals.ts'
import { createStdStream, findStdinKind } from './std-streams.ts'
import { realTimers } from './timers.ts'

export function createProcessHost(openCacheFolder: Host['openCacheFolder']): Host {
  // `--errors json` promises a single line on stderr, so Node must not print its warnings.
  process.removeAllListeners('warning')
  // If stderr is closed, its text is lost and the run continues.
  const stderr = createStdStream(2, () => process.stderr.on('error', () => {}))
  return {
    env: process.env,
    get cwd() {
      return currentFolder()
    },
    platform: process.platform,
    uid: process.getuid?.(),
    stdin: {
      get kind() {
        return findStdinKind()
      },
      open: () => process.stdin,
      setRaw: (isRaw) => void process.stdin.setRawMode(isRaw),
      interrupt: interruptProcess,
      suspend: suspendProcess,
    },
    stdout: createStdStream(1, () => process.stdout),
    stderr,
    // `performance` would take 2 ms to load, 3 % of the time of a chat.
    timers: { ...realTimers, now: () => Math.floor(process.uptime() * 1000) },
    checkArguments,
    onSignal: (clean) => endProcessOnSignal(clean, stderr),
    interceptInterrupt,
    reportBugs,
    exitAfter: exitProcessAfter,
    async runPager(...command) {
      const { runCommandOnTerminal } = await import('./io/command.ts')
      return runCommandOnTerminal(...command)
    },
    limitYoungGeneration,
    openCacheFolder,
  }
}

/**
 * Without a limit, V8's young generation grows to 128 MiB in a long run. The limit costs 2 to 8 % of
 * processor time.
 */
function limitYoungGeneration(cleanups: BasicContext['cleanups']): void {
  setGrowthFactor(1)
  // V8 rejects compiled code that was stored with other flags, so the default is restored before parley
  // stores compiled code.
  cleanups.add(restoreYoungGeneration)
}

const restoreYoungGeneration = () => setGrowthFactor(2)

const setGrowthFactor = (factor: number) =>
  process.getBuiltinModule('node:v8').setFlagsFromString(`--semi-space-growth-factor=${factor}`)

function currentFolder(): string {
  try {
    return process.cwd()
  } catch (error) {
    throw new CliError('file', `the current folder: ${describeFileError(error)}; change to another folder`)
  }
}

/**
 * Throws a usage error for an argument that is not UTF-8. Node replaces invalid bytes by U+FFFD, so parley
 * would send a text that the user did not type.
 */
function checkArguments(argv: string[]): void {
  const suspects = argv.filter((word) => word.includes('\ufffd'))
  if (suspects.length > 0 && !areArgumentsUtf8())
    throw usageError(`an argument is not UTF-8: ${suspects.join(' or ')}`)
}

/**
 * Returns true if all arguments are valid UTF-8, so that each U+FFFD in them comes from the user, not from
 * Node. Only Linux shows the original bytes (in `/proc`). Elsewhere, the result is false.
 */
function areArgumentsUtf8(): boolean {
  try {
    return isUtf8(readFileSync('/proc/self/cmdline'))
  } catch {
    return false
  }
}
