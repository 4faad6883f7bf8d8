import { Writable } from 'node:stream'
import type { StdStream } from '../basic-context.ts'
import { disableInlineCiCommands } from './escape.ts'

/**
 * Changes a text so that GitHub's runner executes no command in it: `::` at the start of a line, or `##[`
 * anywhere. `isAtStart` is false if the text continues a line.
 */
export function disableCiCommands(text: string, isAtStart = true): string {
  const marked = text.replace(/[\r\n]+(?=[^\r\n])/g, '$&| ')
  return disableInlineCiCommands(`${isAtStart && /^[^\r\n]/.test(marked) ? '| ' : ''}${marked}`)
}

/**
 * Wraps a stream so that CI runners execute no line of its text, such as `::error::`. The wrapped stream is
 * not a terminal, because a log cannot redraw lines.
 */
export function createCiSafeStream(stream: StdStream): StdStream {
  let guarded: Writable | undefined
  let isAtStart = true
  const open = () => {
    const target = stream.open()
    return new Writable({
      decodeStrings: false,
      write(chunk: Uint8Array | string, _, done) {
        const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
        target.write(disableCiCommands(text, isAtStart), done)
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
