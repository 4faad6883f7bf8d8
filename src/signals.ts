import { writeSync } from 'node:fs'
import { constants } from 'node:os'
import type { Interrupt } from './context.ts'
import type { StdStream } from './io/output.ts'
import { setLongTimeout } from './timers.ts'

/** SIGBREAK exists only on Windows (Ctrl-Break). CI runners send it before they kill the process. */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const

/**
 * After the cleanup the signal itself ends the process, so a loop in a shell stops, too. A second signal
 * ends the process at once.
 */
export function onSignal(clean: (exit: number) => string, stderr: StdStream): void {
  for (const signal of signals) {
    process.once(signal, () => {
      removeSignalHandlers()
      try {
        // Opening the stream makes stderr non-blocking, so a full pipe does not delay the end.
        const stream = stderr.open()
        const text = clean(128 + constants.signals[signal])
        // On Windows, a stream also writes synchronously. It shows any text on a console, while `writeSync`
        // writes UTF-8, which a console may take for another encoding.
        if (process.platform === 'win32') stream.write(text)
        else writeSync(2, text)
      } catch {
        // stderr may be closed. The signal ends the process anyway.
      }
      raise(signal)
    })
  }
}

/** The next signal ends the process at once. */
export function removeSignalHandlers(): void {
  for (const signal of signals) process.removeAllListeners(signal)
}

/** Calls `act` instead of ending the process at the first SIGINT. */
export function interceptInterrupt(act: () => void): Interrupt {
  const earlierListeners = process.rawListeners('SIGINT') as NodeJS.SignalsListener[]
  // Node drops a pending signal if it has no listener, so one listener is always registered.
  const restoreListeners = () => {
    const isTaken = process.listeners('SIGINT').some((listener) => listener !== handleFirst)
    if (!isTaken) for (const listener of earlierListeners) process.on('SIGINT', listener)
    process.off('SIGINT', handleFirst)
  }
  const handleFirst = () => {
    restoreListeners()
    act()
  }
  process.on('SIGINT', handleFirst)
  for (const listener of earlierListeners) process.off('SIGINT', listener)
  return {
    release: restoreListeners,
    raise() {
      interrupt()
      // The process must stay alive until Node has handled the signal. A pending signal does not keep it
      // alive, but a timer does.
      setInterval(() => {}, 1000)
      return new Promise(() => {})
    },
  }
}

export const interrupt = (): void => raise('SIGINT')

/**
 * Has the effect of Ctrl-Z on all processes of the pipeline. The system ignores the signal if no shell
 * could resume them. Windows cannot suspend processes.
 */
export function suspend(): void {
  if (process.platform !== 'win32') process.kill(0, 'SIGTSTP')
}

/**
 * Sends a signal to this process. Windows has no signals: `kill` would end the process at once with exit
 * code 1. In a container, a signal from the first process to itself does not end it.
 */
function raise(signal: (typeof signals)[number]): void {
  if (process.platform !== 'win32' && process.pid !== 1) process.kill(process.pid, signal)
  else if (!process.emit(signal, signal)) process.exit(128 + constants.signals[signal])
}

/** Node would end an unfinished run with exit code 0 if the event loop becomes empty. */
export function detectEarlyExit(report: () => void): () => void {
  process.exitCode = 1
  process.once('beforeExit', report)
  return () => void process.off('beforeExit', report)
}

/** Ends the process after this time, because unread output could keep it alive. */
export function exitAfter(milliseconds: number): void {
  if (milliseconds < Infinity) setLongTimeout(() => process.exit(), milliseconds).unref()
}

/** For an uncaught error, ends the process with the exit code that `report` returns. */
export function onCrash(report: (error: unknown) => Promise<number>): void {
  process.on('uncaughtException', async (error) => process.exit(await report(error).catch(() => 1)))
}
