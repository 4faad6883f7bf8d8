import { createReadStream, promises as fs } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, fileProblem, usage } from '../errors.ts'
import { inTime, openFifo, readWhole } from './read-whole.ts'
import { decodeUtf8 } from './utf8.ts'

/** What stands behind file descriptor 0. `none` is nothing to wait for: closed, or a device such as /dev/null. */
export interface Stdin {
  kind: 'terminal' | 'pipe' | 'file' | 'folder' | 'none'
  open(): Readable
  /** A person is there, who may have typed before there was a question. */
  isLive?: boolean | undefined
  /** Of a terminal: whether keys come one by one and unseen, Ctrl-C among them. */
  setRaw?(isRaw: boolean): void
  /** Does what Ctrl-C does while the terminal is not raw. */
  interrupt?(): void
  /** Does what Ctrl-Z does while the terminal is not raw, and resolves when the run goes on. */
  suspend?: (() => Promise<void>) | undefined
}

/** Everything that a command reads of its own accord: stdin, once, and files. Texts are checked to be UTF-8. */
export interface Input {
  readonly stdinKind: Stdin['kind']
  /** From now on stdin and FIFOs are read no longer than to this moment: milliseconds since the epoch. */
  endAt(deadline: number): void
  /** Waits for what a person has to say, no longer than to that moment. */
  inTime<T>(work: Promise<T>, whatGoesOn: string): Promise<T>
  /** stdin whole, for one reader; `reader` names it in the message that a second one gets. */
  stdin(reader: string): Promise<string>
  file(path: string): Promise<Uint8Array>
  isFile(path: string): Promise<boolean>
  /** A file's bytes, or stdin's for `-`. */
  bytes(path: string, reader: string): Promise<Uint8Array>
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

  async function readStdin(reader: string): Promise<Uint8Array> {
    if (!readsStdin) throw usage(`${reader} reads stdin, which --no-stdin forbids`)
    if (firstReader) throw usage(`stdin can be read only once: ${firstReader} and ${reader} both ask for it`)
    firstReader = reader
    if (stdin.kind === 'folder') throw new CliError('file', 'stdin: it is a folder')
    const onIdle = () => note('waiting for stdin (--no-stdin skips it)')
    return readWhole(async () => stdin.open(), { name: 'stdin', deadline, onIdle })
  }

  async function file(path: string, name = path): Promise<Uint8Array> {
    const place = resolve(cwd, path)
    try {
      const stat = await fs.stat(place)
      if (stat.isFile() || stat.isDirectory()) return await fs.readFile(place)
      const onIdle = () => note(`waiting for ${name}`)
      const open = stat.isFIFO()
        ? (signal: AbortSignal) => openFifo(place, signal)
        : async () => createReadStream(place)
      return await readWhole(open, { name, deadline, onIdle })
    } catch (error) {
      throw error instanceof CliError ? error : new CliError('file', `${name}: ${fileProblem(error)}`)
    }
  }

  const bytes = (path: string, reader: string) => (path === '-' ? readStdin(reader) : file(path))

  const stdinText = async (reader: string) => decodeUtf8(await readStdin(reader), 'stdin')

  return {
    stdinKind: readsStdin ? stdin.kind : 'none',
    endAt(time) {
      deadline = time
    },
    inTime: (work, whatGoesOn) => inTime(work, deadline, `while ${whatGoesOn}`),
    stdin: stdinText,
    file,
    async isFile(path) {
      const stat = await fs.stat(resolve(cwd, path)).catch(() => undefined)
      return stat?.isFile() ?? false
    },
    bytes,
    async text(path, reader) {
      return path === '-' ? stdinText(reader) : decodeUtf8(await file(path), path)
    },
    async piped(reader) {
      const isFree = readsStdin && !isForHeader && firstReader === undefined
      const isPiped = isFree && (stdin.kind === 'pipe' || stdin.kind === 'file')
      return isPiped ? stdinText(reader) : ''
    },
    async words(words, reader) {
      const texts: string[] = []
      for (const word of words) {
        texts.push(word === '-' ? (await stdinText(`the word - of ${reader}`)).replace(/\r?\n$/, '') : word)
      }
      return texts.join(' ')
    },
    async value(value, flag) {
      if (!value.startsWith('@')) return value
      if (value.startsWith('@@')) return value.slice(1)
      if (value === '@-') return stdinText(`${flag} @-`)
      return decodeUtf8(await file(value.slice(1), value), value)
    },
  }
}
