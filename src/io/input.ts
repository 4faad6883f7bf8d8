import { closeSync, constants, createReadStream, promises as fs, open, openSync, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import type { BasicContext, Stdin } from '../basic-context.ts'
import {
  CliError,
  convertFileErrors,
  createNotSentDeadlineError,
  toFileFailure,
  usageError,
} from '../errors.ts'
import { schedule, type Timers, yieldToSignals } from '../timers.ts'
import { limitChunks, readBody } from '../wire/exchange.ts'
import { maxTextLength } from '../wire/json/text-limit.ts'
import {
  createTextTooLongError,
  decodeUtf8,
  detectMimeType,
  isBlank,
  isPdf,
  isUtf16,
  tryDecodeUtf8,
} from './file-content.ts'
import { toAbsolutePath } from './paths.ts'
import { escapeShellWord } from './shell-quote.ts'

type InputContext = Pick<BasicContext, 'host' | 'flags' | 'deadline'>

type FileContent = { name?: string; text: string } | { mimeType: string; base64: string }

export interface AcceptedFileKinds {
  mimeTypes: RegExp
  description: string
}

/** Base64 makes the file a third longer, and the result must fit into a string. */
const maxFileBytes = Math.floor(maxTextLength / 4) * 3

export class InputReader {
  readonly stdinKind: Stdin['kind']
  readonly #context: InputContext
  readonly #note: (line: string) => void
  #firstReader: string | undefined

  constructor(context: InputContext, note: (line: string) => void) {
    this.#context = context
    this.#note = note
    this.stdinKind = this.readsStdin ? context.host.stdin.kind : 'none'
  }

  get readsStdin(): boolean {
    return this.#context.flags.stdin !== false
  }

  /** `reader` is the name of the flag or input that reads stdin, for messages. */
  readStdinChunks(reader: string): AsyncIterable<Uint8Array> {
    this.#claimStdin(reader)
    const { host } = this.#context
    const { stdin, timers } = host
    const waiting = { timers, note: () => this.#note(waitingForStdin) }
    return readStream(() => stdin.open(), 'stdin', new AbortController().signal, waiting)
  }

  readFile(name: string, shown = name): Promise<Uint8Array> {
    return convertFileErrors(shown, async () => {
      const path = toAbsolutePath(this.#context.host, name)
      const stat = await fs.stat(path)
      if (stat.isFile() && stat.size > maxTextLength) throw createTextTooLongError(shown)
      return stat.isFile() ? fs.readFile(path) : this.#readFile(name, shown, readBody)
    })
  }

  #readFile<T>(name: string, shown: string, consume: ConsumeChunks<T>): Promise<T> {
    const path = toAbsolutePath(this.#context.host, name)
    return this.#read((stop) => openReadableFile(path, stop), shown, `waiting for ${shown}`, consume)
  }

  /** Passes the content in chunks to `consume`. The path `-` means stdin. Returns the result of `consume`. */
  async readChunks<T>(
    path: string,
    reader: string,
    consume: ConsumeChunks<T>,
    idleNote?: string,
  ): Promise<T> {
    if (path !== '-') return this.#readFile(path, path, consume)
    this.#claimStdin(reader)
    return this.#read(() => this.#context.host.stdin.open(), 'stdin', idleNote ?? waitingForStdin, consume)
  }

  /** The path `-` means stdin. Throws a usage error if stdin is a terminal or was read before. */
  readBytes(path: string, reader: string): Promise<Uint8Array> {
    return path === '-' ? this.#readStdin(reader) : this.readFile(path)
  }

  async readText(path: string, reader: string, shown = path): Promise<string> {
    return path === '-' ? this.readStdinText(reader) : decodeUtf8(await this.readFile(path, shown), shown)
  }

  /**
   * If stdin is not text, the error message suggests `-f -` with the description of `kinds`. parley prints
   * `idleNote` after 2 s without data.
   */
  async readStdinText(reader: string, kinds?: AcceptedFileKinds, idleNote?: string): Promise<string> {
    const bytes = await this.#readStdin(reader, idleNote)
    return decodeUtf8(bytes, 'stdin', kinds && `-f - adds ${kinds.description}`)
  }

  /**
   * Returns UTF-8 text, or base64 with the MIME type that parley detects from the bytes. Throws a usage error
   * if the service does not accept the type.
   */
  async readContent(path: string, { mimeTypes, description }: AcceptedFileKinds): Promise<FileContent> {
    const bytes = await this.readBytes(path, '-f -')
    const name = path === '-' ? 'stdin' : path
    if (bytes.length === 0) throw usageError(`${name}: ${path === '-' ? 'it' : 'the file'} is empty`)
    // Decoding as text is tried first, because a text may begin with the magic number of a file type, such as
    // `BM` of BMP.
    const text = isPdf(bytes) || bytes.includes(0) ? undefined : tryDecodeUtf8(bytes)
    if (text !== undefined) return path === '-' ? { text } : { name: path, text }
    // UTF-16 is excluded first, because its byte order mark looks like the start of an MP3 file.
    const mimeType = isUtf16(bytes) ? undefined : await detectMimeType(bytes)
    if (mimeType && mimeTypes.test(mimeType)) {
      if (bytes.length > maxFileBytes)
        throw usageError(`${name}: longer than 384 MiB, the most that fits into a request`)
      const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
      return { mimeType, base64 }
    }
    // A file in UTF-16, or without NUL, is probably text that is not UTF-8. `decodeUtf8` then throws a usage
    // error that names the invalid line.
    if (!mimeType && (!bytes.includes(0) || isUtf16(bytes))) decodeUtf8(bytes, name)
    const kind = mimeType === undefined ? '' : `: it is ${mimeType}`
    throw usageError(`${name}: neither UTF-8 text nor ${description}${kind}`)
  }

  /**
   * Returns '' with `--no-stdin`, if stdin was read before, or if stdin is empty, closed or a terminal.
   */
  async readPipedText(reader: string, kinds?: AcceptedFileKinds): Promise<string> {
    const { flags, host } = this.#context
    const { kind } = host.stdin
    const isFree = this.readsStdin && this.#firstReader === undefined
    if (flags.failOnEmpty && isFree && kind === 'none') throw emptyStdinError()
    if (!isFree || kind === 'terminal' || kind === 'none') return ''
    const text = await this.readStdinText(reader, kinds, 'waiting for stdin (--no-stdin skips it)')
    if (text.trim() !== '') return text
    this.#note('stdin is empty')
    return ''
  }

  /**
   * Prints a note for a word `@NAME` that names a file, because parley sends the word and not the file. With
   * `-f`, throws a usage error for a word that names a file, because the user probably meant a second file.
   */
  #checkFileNames(words: string[]): void {
    const { flags } = this.#context
    const hasFiles = flags.given?.some(({ flag }) => flag === '--file')
    for (const word of words) {
      const name = word.replace(/^@/, '')
      if ((name === word && !hasFiles) || !this.#isFile(name)) continue
      const asText = `${escapeShellWord(word)} is sent as text`
      const asFile = `-f ${escapeShellWord(name)} adds the file`
      if (name !== word) this.#note(`${asText}; ${asFile}`)
      else
        throw usageError(
          `${escapeShellWord(word)} is a file, but words are sent as text: ${asFile}. To send the name as text, quote it together with other words`,
        )
    }
  }

  #isFile(name: string): boolean {
    try {
      return statSync(toAbsolutePath(this.#context.host, name)).isFile()
    } catch {
      return false
    }
  }

  async joinWords(words: string[], reader: string): Promise<string> {
    this.#checkFileNames(words)
    const texts: string[] = []
    for (const word of words)
      texts.push(
        word === '-' ? (await this.readStdinText(`the word - of ${reader}`)).replace(/\r?\n$/, '') : word,
      )
    return texts.join(' ')
  }

  /** Reads the file of `@FILE`, or stdin for `@-`. `@@TEXT` means `@TEXT`. */
  async readFlagValue(value: string, flag: string): Promise<string> {
    if (!value.startsWith('@') || value.startsWith('@@')) return value.replace(/^@/, '')
    return this.readText(value.slice(1), `${flag} @-`, value)
  }

  #claimStdin(reader: string): void {
    const first = this.#firstReader
    if (!this.readsStdin) throw usageError(`${reader} reads stdin, which --no-stdin forbids`)
    if (first) throw usageError(`stdin can be read only once: both ${first} and ${reader} need it`)
    this.#firstReader = reader
    if (this.stdinKind === 'folder') throw new CliError('file', 'stdin: it is a folder')
    if (this.stdinKind === 'terminal')
      throw usageError(`${reader} reads stdin, which is a terminal: use a pipe or < FILE`)
  }

  async #readStdin(reader: string, idleNote?: string): Promise<Uint8Array> {
    const bytes = await this.readChunks('-', reader, readBody, idleNote)
    if (this.#context.flags.failOnEmpty && isBlank(bytes)) throw emptyStdinError()
    return bytes
  }

  async #read<T>(open: OpenStream, name: string, idleNote: string, consume: ConsumeChunks<T>): Promise<T> {
    const { deadline, host } = this.#context
    const stop = new AbortController()
    const pieces = readStream(open, name, stop.signal, {
      timers: host.timers,
      note: () => this.#note(idleNote),
    })
    const limited = limitChunks(pieces, maxTextLength, () => createTextTooLongError(name))
    return deadline.race(consume(limited), () => {
      stop.abort()
      return createNotSentDeadlineError(`the deadline passed while ${name} was read`)
    })
  }
}

const waitingForStdin = 'waiting for stdin'

const waitingNoteDelayMs = 2000

const emptyStdinError = () => usageError('stdin is empty (--fail-on-empty)')

type ConsumeChunks<T> = (chunks: AsyncGenerator<Uint8Array>) => Promise<T>

type OpenStream = (stop: AbortSignal) => Readable | Promise<Readable>

export async function* readStream(
  open: OpenStream,
  name: string,
  stop: AbortSignal,
  waiting?: { timers: Timers; note(): void },
): AsyncGenerator<Uint8Array> {
  const cancelNote = waiting ? schedule(waiting.timers, waitingNoteDelayMs, waiting.note) : () => {}
  try {
    const stream = await open(stop)
    const close = () => stream.destroy()
    if (stop.aborted) close()
    stop.addEventListener('abort', close)
    for await (const chunk of stream) {
      cancelNote()
      yield chunk
    }
    await yieldToSignals()
  } catch (error) {
    throw toFileFailure(error, name)
  } finally {
    cancelNote()
  }
}

/**
 * Longer chunks need more memory. parley works on a long chunk until V8 moves the chunk to the old
 * generation, which V8 frees late.
 */
const chunkBytes = 32 * 1024

/**
 * Opening a FIFO blocks a thread until a program opens the FIFO for writing. If `stop` aborts, parley itself
 * opens it for writing, which frees the thread.
 */
export async function openReadableFile(path: string, stop: AbortSignal): Promise<Readable> {
  if (!(await fs.stat(path)).isFIFO()) return createReadStream(path, { highWaterMark: chunkBytes })
  const wake = () => {
    try {
      closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
    } catch {
      // If the user may not open the FIFO for writing, the thread stays blocked until another program opens
      // the FIFO.
    }
  }
  stop.addEventListener('abort', wake)
  const [{ Socket }, fd] = await Promise.all([import('node:net'), promisify(open)(path, 'r')])
  stop.removeEventListener('abort', wake)
  return new Socket({ fd, readable: true, writable: false })
}
