import { writeSync } from 'node:fs'
import type { Host, StdStream } from './basic-context.ts'
import { setLongTimeout } from './timers.ts'

/** SIGBREAK exists only on Windows (Ctrl-Break). CI runners send it before they kill a process. */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGBREAK'] as const

/** After the cleanup, the signal itself ends the process, so that a loop in a shell stops, too. */
export function endProcessOnSignal(clean: (exit: number) => string, stderr: StdStream): void {
  for (const signal of signals) {
    process.on(signal, () => {
      try {
        // Opening the stream makes it non-blocking, so a full pipe does not delay the end of the process.
        const stream = stderr.open()
        const text = clean(getSignalStatus(signal))
        // A Windows console may decode the bytes of `writeSync` with another encoding than UTF-8. On Windows,
        // a stream shows any text and is synchronous.
        if (process.platform === 'win32') stream.write(text)
        else writeSync(2, text)
      } catch {
        // Even if stderr is closed, the signal ends the process.
      }
      // Until here, a second signal waits, so that it does not prevent the report and the message.
      removeSignalHandlers()
      raise(signal)
    })
  }
}

/** Returns the exit status that a shell reports. A static import of `node:os` would slow down every start. */
const getSignalStatus = (signal: NodeJS.Signals) =>
  128 + process.getBuiltinModule('node:os').constants.signals[signal]

export function removeSignalHandlers(): void {
  for (const signal of signals) process.removeAllListeners(signal)
}

export function interceptInterrupt(act: () => void): ReturnType<NonNullable<Host['interceptInterrupt']>> {
  const earlierListeners = process.rawListeners('SIGINT') as NodeJS.SignalsListener[]
  // Node drops a pending signal that has no listener, so at least one listener stays registered.
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
      interruptProcess()
      // A pending signal does not keep the process alive, so a timer does until Node has handled the signal.
      setInterval(() => {}, 1000)
      return new Promise(() => {})
    },
  }
}

export const interruptProcess = (): void => raise('SIGINT')

/**
 * Stops all processes of the pipeline, like Ctrl-Z. If no shell could resume them, the system ignores the
 * signal.
 */
export function suspendProcess(): void {
  if (process.platform !== 'win32') process.kill(0, 'SIGTSTP')
}

/**
 * Sends a signal to this process, except in two cases. On Windows, `kill` would end the process at once with
 * exit code 1. The first process of a container cannot end itself by a signal.
 */
function raise(signal: (typeof signals)[number]): void {
  if (process.platform !== 'win32' && process.pid !== 1) process.kill(process.pid, signal)
  else if (!process.emit(signal, signal)) process.exit(getSignalStatus(signal))
}

/**
 * Reports a bug: an uncaught error, or an event loop that is empty before the run has finished. After an empty
 * event loop, Node would exit with code 0, so the exit code is 1 until the caller of `main` sets another one. The
 * returned function ends the check of the event loop.
 */
export function reportBugs(report: (error: unknown) => Promise<number>): () => void {
  process.exitCode = 1
  process.on('uncaughtException', async (error) => process.exit(await report(error).catch(() => 1)))
  const reportEarlyExit = () => void report(Object.assign(new Error(), { name: 'EmptyEventLoop' }))
  process.once('beforeExit', reportEarlyExit)
  return () => void process.off('beforeExit', reportEarlyExit)
}

/** Output that nobody reads could keep the process alive, so a timer ends the process. */
export function exitProcessAfter(milliseconds: number): void {
  if (milliseconds < Infinity) setLongTimeout(() => process.exit(), milliseconds).unref()
}
