import { Writable } from 'node:stream'
import { breakRunnerCommands } from './escape.ts'
import type { StdStream } from './output.ts'

/**
 * Takes their meaning from what a runner of GitHub's would read as its own commands: `::` at the start of a line, and
 * `##[` anywhere. `isAtStart` says whether the text begins a line.
 */
export function guardTextFromRunner(text: string, isAtStart = true): string {
  const marked = text.replace(/[\r\n]+(?=[^\r\n])/g, '$&| ')
  return breakRunnerCommands(`${isAtStart && /^[^\r\n]/.test(marked) ? '| ' : ''}${marked}`)
}

/** A stream whose lines no runner takes for commands. It is a log: nothing on it is written anew, as on a terminal. */
export function guardStreamFromRunner(stream: StdStream): StdStream {
  let guarded: Writable | undefined
  let isAtStart = true
  const open = () => {
    const target = stream.open()
    return new Writable({
      decodeStrings: false,
      write(chunk: Uint8Array | string, _, done) {
        const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
        target.write(guardTextFromRunner(text, isAtStart), done)
        isAtStart = /[\r\n]$/.test(text)
      },
    }).on('error', () => {})
  }
  return {
    isTerminal: false,
    open() {
      guarded ??= open()
      return guarded
    },
    writeSync: () => 0,
  }
}
