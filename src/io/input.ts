import { closeSync, constants, createReadStream, promises as fs, open, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { asFileFailure, CliError, tooLate, usage } from '../errors.ts'
import { callAfter, inTime, type Limit, type Timers } from '../timers.ts'
import { readBody } from '../wire/exchange.ts'
import { longestText } from '../wire/json/body-text.ts'
import { absolutePath } from './paths.ts'
import { decodeUtf8, isBlank, tooLong } from './utf8.ts'

/** stdin. Of kind `none` it is closed, or a device such as /dev/null, and there is nothing to wait for. */
export interface Stdin {
  kind: 'terminal' | 'pipe' | 'file' | 'folder' | 'none'
  /** The real path of a regular file. */
  readonly file?: string | undefined
  open(): Readable
  /** Only of a terminal on which a person types: whether keys, Ctrl-C too, are delivered one by one and are not shown. */
  setRaw?(isRaw: boolean): void
  /** Does what Ctrl-C does while the terminal is not raw. */
  interrupt?(): void
  /** Calls `act` whenever the stopped run resumes, as by fg, until what it returns is called. */
  onContinue?(act: () => void): () => void
  /** Does what Ctrl-Z does while the terminal is not raw. */
  suspend?: (() => void) | undefined
}

export interface InputOptions {
  stdin: Stdin
  /** Its current folder may be gone, and is asked for only if it is needed. */
  host: { readonly cwd: string; readonly platform: NodeJS.Platform }
  /** False with `--no-stdin`. */
  readsStdin: boolean
  /** A header needs stdin. Headers are read after the words. */
  isForHeader: boolean
  /** With `--fail-on-empty`: reading a stdin without text is a usage error. */
  needsText: boolean
  /** When reading stdin and FIFOs ends, and the wait for a person's answer. */
  limit: Limit
  timers: Timers
  note(line: string): void
}

/** What a command reads: stdin, once, and files. Texts must be UTF-8. */
export class Input {
  readonly stdinKind: Stdin['kind']
  readonly #options: InputOptions
  #firstReader: string | undefined

  constructor(options: InputOptions) {
    this.stdinKind = options.readsStdin ? options.stdin.kind : 'none'
    this.#options = options
  }

  /** False with `--no-stdin`. */
  get readsStdin(): boolean {
    return this.#options.readsStdin
  }

  /** Waits for a person's answer, until the deadline at the latest. */
  inTime<T>(work: Promise<T>, whatGoesOn: string): Promise<T> {
    const { limit, timers } = this.#options
    return inTime(work, { time: limit.deadline, timers }, () =>
      tooLate(`the deadline passed while ${whatGoesOn}`),
    )
  }

  /** All of stdin. Only one reader may have it: a second one gets a usage error, which names both. */
  async stdin(reader: string): Promise<string> {
    return decodeUtf8(await this.#readStdin(reader), 'stdin')
  }

  /** stdin piece by piece, for one reader. */
  stdinChunks(reader: string): AsyncIterable<Uint8Array> {
    this.#takeStdin(reader)
    const { stdin, timers, needsText } = this.#options
    const chunks = withHint(stdin.open(), timers, () => this.#sayWaiting())
    return needsText ? requireText(chunks) : chunks
  }

  file(path: string, name = path): Promise<Uint8Array> {
    const { host, limit, timers, note } = this.#options
    return readFile(absolutePath(host, path), { name, deadline: limit.deadline, timers, note })
  }

  /** A file's bytes, or stdin's for `-`. */
  bytes(path: string, reader: string): Promise<Uint8Array> {
    return path === '-' ? this.#readStdin(reader) : this.file(path)
  }

  /** A file's text, or stdin's for `-`. */
  async text(path: string, reader: string): Promise<string> {
    return path === '-' ? this.stdin(reader) : decodeUtf8(await this.file(path), path)
  }

  /** The text of a stdin that is a pipe, socket or file, to add to words; `undefined` if it is something else, or was read. */
  async piped(reader: string): Promise<string | undefined> {
    const { readsStdin, isForHeader, needsText, stdin, note } = this.#options
    const isFree = readsStdin && !isForHeader && this.#firstReader === undefined
    if (needsText && isFree && stdin.kind === 'none') throw withoutText()
    if (!isFree || (stdin.kind !== 'pipe' && stdin.kind !== 'file')) return undefined
    const onIdle = () => note('waiting for stdin (--no-stdin skips it)')
    return decodeUtf8(await this.#readStdin(reader, onIdle), 'stdin')
  }

  /** The same, beside other input. If it is blank, it adds nothing, and a note says so. */
  async pipedBeside(reader: string): Promise<string> {
    const text = await this.piped(reader)
    if (text === undefined) return ''
    if (text.trim() !== '') return text
    this.#options.note('stdin is empty')
    return ''
  }

  /** For a command that leaves stdin alone, because of what was given. Throws a usage error if a flag requires its text. */
  leaveStdin(given: string): void {
    const { needsText, isForHeader } = this.#options
    if (needsText && this.#firstReader === undefined && !isForHeader)
      throw usage(`--fail-on-empty: stdin is not read beside ${given}`)
  }

  /** Words as one text; the word `-` is stdin's text. */
  async words(words: string[], reader: string): Promise<string> {
    const texts: string[] = []
    for (const word of words) {
      const isStdin = word === '-'
      texts.push(isStdin ? (await this.stdin(`the word - of ${reader}`)).replace(/\r?\n$/, '') : word)
    }
    return texts.join(' ')
  }

  /** The value of a flag that accepts `@FILE`, `@-` and `@@`. */
  async value(value: string, flag: string): Promise<string> {
    if (!value.startsWith('@')) return value
    if (value.startsWith('@@')) return value.slice(1)
    if (value === '@-') return this.stdin(`${flag} @-`)
    return decodeUtf8(await this.file(value.slice(1), value), value)
  }

  #takeStdin(reader: string): void {
    const first = this.#firstReader
    if (!this.readsStdin) throw usage(`${reader} reads stdin, which --no-stdin forbids`)
    if (first) throw usage(`stdin can be read only once: ${first} and ${reader} both ask for it`)
    this.#firstReader = reader
    if (this.#options.stdin.kind === 'folder') throw new CliError('file', 'stdin: it is a folder')
  }

  #sayWaiting(): void {
    const { stdin, host, note } = this.#options
    const endKeys = host.platform === 'win32' ? 'Ctrl-Z and Enter end' : 'Ctrl-D ends'
    note(stdin.kind === 'terminal' ? `waiting for stdin; ${endKeys} it` : 'waiting for stdin')
  }

  async #readStdin(reader: string, onIdle = () => this.#sayWaiting()): Promise<Uint8Array> {
    this.#takeStdin(reader)
    const { stdin, limit, timers, needsText } = this.#options
    const reading = { name: 'stdin', deadline: limit.deadline, timers, onIdle }
    const bytes = await readWhole(async () => stdin.open(), reading)
    await letSignalsCome()
    if (needsText && isBlank(bytes)) throw withoutText()
    return bytes
  }
}

/** The chunks of a stream; `onIdle` is called if none has come after 2 s. */
async function* withHint(stream: Readable, timers: Timers, onIdle: () => void): AsyncGenerator<Uint8Array> {
  const cancelHint = callAfter(timers, aWhile, onIdle)
  try {
    for await (const chunk of stream) {
      cancelHint()
      yield chunk
    }
    await letSignalsCome()
  } finally {
    cancelHint()
  }
}

/**
 * Ctrl-C also ends the program that writes to the pipe, and parley may see the end of the pipe before the signal. Without
 * this it would still send its request.
 */
export async function letSignalsCome(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
}

/** After so long without a byte, parley says what it waits for. Milliseconds. */
const aWhile = 2000

const withoutText = () => usage('stdin is empty (--fail-on-empty)')

async function* requireText(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let hasText = false
  for await (const chunk of chunks) {
    hasText ||= !isBlank(chunk)
    yield chunk
  }
  if (!hasText) throw withoutText()
}

async function readFile(
  path: string,
  { note, ...reading }: Omit<Reading, 'onIdle'> & { note(line: string): void },
): Promise<Uint8Array> {
  const { name } = reading
  try {
    const stat = await fs.stat(path)
    if (stat.isFile() && stat.size > longestText) throw tooLong(name)
    if (stat.isFile() || stat.isDirectory()) return await fs.readFile(path)
    const onIdle = () => note(`waiting for ${name}`)
    const open = stat.isFIFO()
      ? (signal: AbortSignal) => openFifo(path, signal)
      : async () => createReadStream(path)
    const bytes = await readWhole(open, { ...reading, onIdle })
    // The path may be /dev/stdin.
    await letSignalsCome()
    return bytes
  } catch (error) {
    throw asFileFailure(error, name)
  }
}

interface Reading {
  /** For messages. */
  name: string
  /** By the forward clock, or Infinity. */
  deadline: number
  timers: Timers
  /** Called after 2 s without a byte. */
  onIdle(): void
}

/**
 * Reads a stream to its end. Throws a `CliError` if the deadline comes first, or if the stream is longer than a
 * text can be.
 */
async function readWhole(
  openStream: (signal: AbortSignal) => Promise<Readable>,
  { name, deadline, timers, onIdle }: Reading,
): Promise<Uint8Array> {
  const late = new AbortController()
  const cancelEnd = Number.isFinite(deadline)
    ? callAfter(timers, deadline - timers.now(), () => late.abort())
    : undefined
  const cancelHint = callAfter(timers, aWhile, onIdle)
  try {
    const stream = await openStream(late.signal)
    const stop = () => stream.destroy(tooLate(`the deadline passed while ${name} was read`))
    if (late.signal.aborted) stop()
    late.signal.addEventListener('abort', stop)
    return await readBody(bounded(stream, name, cancelHint))
  } catch (error) {
    throw asFileFailure(error, name)
  } finally {
    cancelHint()
    cancelEnd?.()
  }
}

async function* bounded(stream: Readable, name: string, onChunk: () => void): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of stream) {
    onChunk()
    size += chunk.length
    if (size > longestText) throw tooLong(name)
    yield chunk
  }
}

/** Opens a FIFO. That waits in a thread until a program opens it for writing; when `signal` aborts, this function does. */
export async function openFifo(path: string, signal: AbortSignal): Promise<Readable> {
  const wake = () => {
    try {
      closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
    } catch {
      // A FIFO that may not be opened for writing keeps the thread waiting.
    }
  }
  signal.addEventListener('abort', wake)
  const [{ Socket }, fd] = await Promise.all([import('node:net'), promisify(open)(path, 'r')])
  signal.removeEventListener('abort', wake)
  return new Socket({ fd, readable: true, writable: false })
}
