import { appendFile, open, writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { CliError, fileProblem } from '../errors.ts'

/** How much waits to be written, at most, in characters: a reader may be slower than the requests, or not read at all. */
const mostWaiting = 1024 * 1024

/** A log of lines. What finds no room is left out, and counted; what cannot be written is lost. */
export interface Log {
  /** Takes a line, which is written a moment later, together with those that come meanwhile. */
  add(line: string): void
  /** Writes at once what waits: the process is about to end. */
  flush(): void
}

/** Where a log goes: `write` resolves when there is room for more. */
interface LogTarget {
  write(text: string): Promise<unknown>
  writeNow(text: string): unknown
}

export const logToStream = (stream: Writable): Log =>
  createLog({
    write: (text) => new Promise((resolve) => stream.write(text, resolve)),
    writeNow: (text) => stream.write(text),
  })

/** Opens a file, which is added to. Throws a `CliError`. */
export async function logToFile(path: string, name: string): Promise<Log> {
  try {
    // A plain descriptor: Node 26 throws if a `FileHandle` is collected that is still open.
    const file = await promisify(open)(path, 'a', 0o600)
    return createLog({
      write: (text) => promisify(appendFile)(file, text),
      writeNow: (text) => writeSync(file, text),
    })
  } catch (error) {
    throw new CliError('file', `${name}: ${fileProblem(error)}`)
  }
}

function createLog({ write, writeNow }: LogTarget): Log {
  let waiting = ''
  let leftOut = 0
  let isWriting = false

  function takeAll(): string {
    const text = leftOut > 0 ? `${waiting}(${leftOut} lines left out)\n` : waiting
    waiting = ''
    leftOut = 0
    return text
  }

  async function writeAll(): Promise<void> {
    isWriting = true
    await new Promise(setImmediate)
    for (let text = takeAll(); text !== ''; text = takeAll()) await write(text).catch(() => {})
    isWriting = false
  }

  return {
    add(line) {
      if (waiting.length + line.length > mostWaiting) leftOut++
      else waiting += `${line}\n`
      if (!isWriting) void writeAll()
    },
    flush() {
      const text = takeAll()
      if (text !== '') writeNow(text)
    },
  }
}
