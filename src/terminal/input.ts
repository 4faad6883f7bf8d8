import { promises as fs } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, fileProblem, usage } from '../errors.ts'
import { collectLong } from '../wire/exchange.ts'
import { longestText } from '../wire/json-bytes.ts'

/** What stands behind file descriptor 0. `none` is nothing to wait for: closed, or a device such as /dev/null. */
export interface Stdin {
  kind: 'terminal' | 'pipe' | 'file' | 'folder' | 'none'
  open(): Readable
  /** Of a terminal: whether keys come one by one and unseen, Ctrl-C among them. */
  setRaw?(isRaw: boolean): void
  /** Does what Ctrl-C does while the terminal is not raw. */
  interrupt?(): void
}

/** Everything that a command reads of its own accord: stdin, once, and files. Texts are checked to be UTF-8. */
export interface Input {
  readonly stdinKind: Stdin['kind']
  /** From now on stdin is read no longer than to this moment: milliseconds since the epoch. */
  endAt(deadline: number): void
  /** stdin whole, for one reader; `reader` names it in the message that a second one gets. */
  stdin(reader: string): Promise<string>
  file(path: string): Promise<Uint8Array>
  /** A file's text, or stdin's for `-`. */
  text(path: string, reader: string): Promise<string>
  /** What a pipe, socket or file adds to words; nothing where it is read otherwise. */
  piped(reader: string): Promise<string>
  /** Words as one text; the word `-` is stdin's text. */
  words(words: string[], reader: string): Promise<string>
  /** The value of a flag that takes `@FILE`, `@-` and `@@`. */
  value(value: string, flag: string): Promise<string>
}

export interface InputOptions {
  stdin: Stdin
  cwd: string
  /** False with `--no-stdin`. */
  readsStdin: boolean
  /** A header asks for it, which is read after the words. */
  isForHeader: boolean
  note(line: string): void
}

export function createInput({ stdin, cwd, readsStdin, isForHeader, note }: InputOptions): Input {
  let firstReader: string | undefined
  let deadline = Infinity

  async function readStdin(reader: string): Promise<string> {
    if (!readsStdin) throw usage(`${reader} reads stdin, which --no-stdin forbids`)
    if (firstReader) throw usage(`stdin can be read only once: ${firstReader} and ${reader} both ask for it`)
    firstReader = reader
    if (stdin.kind === 'folder') throw new CliError('file', 'stdin: it is a folder')
    const hint = setTimeout(() => note('waiting for stdin (--no-stdin skips it)'), 2000)
    const stream = stdin.open()
    const left = Math.min(deadline - Date.now(), 2 ** 31 - 1)
    const end = Number.isFinite(deadline) ? setTimeout(() => stream.destroy(tooLate()), left) : undefined
    try {
      return decodeUtf8(await collectLong(bounded(stream, () => clearTimeout(hint))), 'stdin')
    } catch (error) {
      throw error instanceof CliError ? error : new CliError('file', `stdin: ${fileProblem(error)}`)
    } finally {
      clearTimeout(hint)
      clearTimeout(end)
    }
  }

  async function file(path: string): Promise<Uint8Array> {
    try {
      return await fs.readFile(resolve(cwd, path))
    } catch (error) {
      throw new CliError('file', `${path}: ${fileProblem(error)}`)
    }
  }

  async function text(path: string, reader: string): Promise<string> {
    return path === '-' ? readStdin(reader) : decodeUtf8(await file(path), path)
  }

  return {
    stdinKind: readsStdin ? stdin.kind : 'none',
    endAt(time) {
      deadline = time
    },
    stdin: readStdin,
    file,
    text,
    async piped(reader) {
      const isFree = readsStdin && !isForHeader && firstReader === undefined
      const isPiped = isFree && (stdin.kind === 'pipe' || stdin.kind === 'file')
      return isPiped ? readStdin(reader) : ''
    },
    async words(words, reader) {
      const texts: string[] = []
      for (const word of words) {
        texts.push(word === '-' ? (await readStdin(`the word - of ${reader}`)).replace(/\r?\n$/, '') : word)
      }
      return texts.join(' ')
    },
    async value(value, flag) {
      if (!value.startsWith('@')) return value
      if (value.startsWith('@@')) return value.slice(1)
      return text(value.slice(1), `${flag} ${value}`)
    },
  }
}

const tooLate = () =>
  new CliError('not-sent', 'the deadline passed while stdin was read', {
    sent: 'no',
    consequence: 'nothing was sent',
    safeToRetry: true,
  })

async function* bounded(stream: Readable, onChunk: () => void): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of stream) {
    onChunk()
    size += chunk.length
    if (size > longestText) throw tooLong('stdin')
    yield chunk
  }
}

const tooLong = (name: string) => usage(`${name}: longer than 512 MiB, the most that parley reads`)

/**
 * Text must be UTF-8; a byte order mark is dropped. Throws a usage error for a text that is too long, and with the
 * offset of the first bad byte.
 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  if (bytes.length > longestText) throw tooLong(name)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw usage(`${name}: not UTF-8 text: byte ${firstInvalid(bytes)} is not valid`)
  }
}

const step = 64 * 1024

/** The first byte that makes the text before it invalid: its neighbourhood first, then by halves. */
function firstInvalid(bytes: Uint8Array): number {
  let valid = 0
  while (valid + step < bytes.length && isValidStart(bytes.subarray(valid, valid + step))) {
    valid += step
    // The next step begins where a character does.
    while (((bytes[valid] ?? 0) & 0xc0) === 0x80) valid--
  }
  const start = valid
  let invalid = Math.min(valid + step, bytes.length)
  while (valid + 1 < invalid) {
    const middle = (valid + invalid) >> 1
    if (isValidStart(bytes.subarray(start, middle))) valid = middle
    else invalid = middle
  }
  return valid
}

function isValidStart(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
