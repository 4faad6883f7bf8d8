import type { Stdin } from './input.ts'

/** What a person types on stdin. */
export interface Keyboard {
  /** One character, or `undefined` at the end of the input. */
  read(): Promise<string | undefined>
  /** Drops what was typed until now; `onDropped` sees it. */
  dropTyped(options: { onDropped(text: string): void }): Promise<void>
  /** Releases stdin, so that the process can end. */
  close(): Promise<void>
}

/** Once nothing arrives for so long, all that was typed has arrived. Milliseconds. */
const quiet = 50

export function createKeyboard(stdin: Stdin): Keyboard {
  const stream = stdin.open()
  const chunks = stream[Symbol.asyncIterator]()
  const decoder = new TextDecoder()
  let coming: Promise<IteratorResult<Uint8Array>> | undefined
  /** Typed ahead, or pasted as more than one line. */
  let ahead = ''

  return {
    async read() {
      while (ahead === '') {
        coming ??= chunks.next()
        const { done, value } = await coming
        coming = undefined
        if (done) return undefined
        ahead = decoder.decode(value, { stream: true })
      }
      const char = String.fromCodePoint(ahead.codePointAt(0) as number)
      ahead = ahead.slice(char.length)
      return char
    },
    async dropTyped({ onDropped }) {
      for (let isQuiet = false; !isQuiet; ) {
        ahead = ''
        coming ??= chunks.next()
        const pause = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), quiet))
        const next = await Promise.race([coming, pause])
        isQuiet = next === undefined || next.done === true
        if (isQuiet) continue
        coming = undefined
        onDropped(decoder.decode(next?.value, { stream: true }))
      }
    },
    async close() {
      if (coming) stream.destroy()
      else await chunks.return?.()
    },
  }
}
