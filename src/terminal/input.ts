import { promises as fs } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, fileProblem, usage } from '../errors.ts'

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
  /** stdin whole, for one reader; `reader` names it in the message that a second one gets. */
  stdin(reader: string): Promise<string>
  file(path: string): Promise<Uint8Array>
  /** A file's text, or stdin's for `-`. */
  text(path: string, reader: string): Promise<string>
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
  note(line: string): void
}

export function createInput({ stdin, cwd, readsStdin, note }: InputOptions): Input {
  let firstReader: string | undefined

  async function readStdin(reader: string): Promise<string> {
    if (!readsStdin) throw usage(`${reader} reads stdin, which --no-stdin forbids`)
    if (firstReader) throw usage(`stdin can be read only once: ${firstReader} and ${reader} both ask for it`)
    firstReader = reader
    if (stdin.kind === 'folder') throw new CliError('file', 'stdin: it is a folder')
    const hint = setTimeout(() => note('waiting for stdin (--no-stdin skips it)'), 2000)
    const chunks: Uint8Array[] = []
    try {
      for await (const chunk of stdin.open()) {
        clearTimeout(hint)
        chunks.push(chunk)
      }
    } catch (error) {
      throw new CliError('file', `stdin: ${fileProblem(error)}`)
    } finally {
      clearTimeout(hint)
    }
    return decodeUtf8(Buffer.concat(chunks), 'stdin')
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
    stdin: readStdin,
    file,
    text,
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

/** Text must be UTF-8; a byte order mark is dropped. Throws a usage error with the offset of the first bad byte. */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw usage(`${name}: not UTF-8 text: byte ${firstInvalid(bytes)} is not valid`)
  }
}

/** Finds by halves the first byte that makes the text before it invalid. */
function firstInvalid(bytes: Uint8Array): number {
  let valid = 0
  let invalid = bytes.length
  while (valid + 1 < invalid) {
    const middle = (valid + invalid) >> 1
    if (isValidStart(bytes.subarray(0, middle))) valid = middle
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
