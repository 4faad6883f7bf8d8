import { writeSync } from 'node:fs'
import { constants } from 'node:os'
import type { Interrupt } from './context.ts'
import type { StdStream } from './io/output.ts'
import { setLongTimeout } from './timers.ts'

/** SIGBREAK is Windows' own, by Ctrl-Break; CI runners send it there before they kill. Elsewhere it never comes. */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const

/** The process dies by the signal itself, so that a shell's loop stops too; a second signal ends it at once. */
export function onSignal(clean: (exit: number) => string, stderr: StdStream): void {
  for (const signal of signals) {
    process.once(signal, () => {
      stopListening()
      try {
        // A full stderr does not block once it is a stream.
        const stream = stderr.open()
        const text = clean(128 + constants.signals[signal])
        // There a stream writes at once, and only it writes text on a console.
        if (process.platform === 'win32') stream.write(text)
        else writeSync(2, text)
      } catch {
        // The signal ends the process even if stderr is gone.
      }
      raise(signal)
    })
  }
}

/** From now on a signal ends the process at once. */
export function stopListening(): void {
  for (const signal of signals) process.removeAllListeners(signal)
}

/** Has `act` called in place of the first SIGINT. */
export function interceptInterrupt(act: () => void): Interrupt {
  const others = process.rawListeners('SIGINT') as NodeJS.SignalsListener[]
  // A signal that has come and was not told yet is lost once nobody listens, so there is always a listener.
  const giveBack = () => {
    const isTaken = process.listeners('SIGINT').some((listener) => listener !== takeFirst)
    if (!isTaken) for (const listener of others) process.on('SIGINT', listener)
    process.off('SIGINT', takeFirst)
  }
  const takeFirst = () => {
    giveBack()
    act()
  }
  process.on('SIGINT', takeFirst)
  for (const listener of others) process.off('SIGINT', listener)
  return {
    release: giveBack,
    raise() {
      interrupt()
      // A signal that is on its way does not keep a process running.
      setInterval(() => {}, 1000)
      return new Promise(() => {})
    },
  }
}

/** Sends what Ctrl-C sends. */
export const interrupt = (): void => raise('SIGINT')

/**
 * Windows has no signals: `kill` would end the process at once, as one that failed with exit code 1. And the first
 * process of a container does not die by one that it sends to itself.
 */
function raise(signal: (typeof signals)[number]): void {
  if (process.platform !== 'win32' && process.pid !== 1) process.kill(process.pid, signal)
  else if (!process.emit(signal, signal)) process.exit(128 + constants.signals[signal])
}

/** While a run has not ended, the process fails: an empty event loop alone would end it with exit code 0. */
export function detectEarlyExit(report: () => void): () => void {
  process.exitCode = 1
  process.once('beforeExit', report)
  return () => void process.off('beforeExit', report)
}

/** Ends the process after so many milliseconds, if something that nobody takes keeps it alive. */
export function exitAfter(milliseconds: number): void {
  if (milliseconds < Infinity) setLongTimeout(() => process.exit(), milliseconds).unref()
}

/** Has an error reported that nothing caught, and ends the process with the exit code that it gets. */
export function onCrash(report: (error: unknown) => Promise<number>): void {
  process.on('uncaughtException', async (error) => process.exit(await report(error).catch(() => 1)))
}
