import { closeSync, constants, open, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { asFileFailure, CliError } from '../errors.ts'
import { readBody } from '../wire/exchange.ts'
import { longestText } from '../wire/json/encoder.ts'
import { tooLong } from './utf8.ts'

interface Reading {
  /** For messages. */
  name: string
  /** Milliseconds since the epoch, or Infinity. */
  deadline: number
  /** Called after 2 s without a byte. */
  onIdle(): void
}

/**
 * Reads a stream to its end. Throws a `CliError` where the deadline comes first, or where the stream is longer than a
 * text can be.
 */
export async function readWhole(
  openStream: (signal: AbortSignal) => Promise<Readable>,
  { name, deadline, onIdle }: Reading,
): Promise<Uint8Array> {
  const late = new AbortController()
  const end = Number.isFinite(deadline) ? setTimeout(() => late.abort(), leftOf(deadline)) : undefined
  const hint = setTimeout(onIdle, 2000)
  try {
    const stream = await openStream(late.signal)
    const stop = () => stream.destroy(tooLate(`while ${name} was read`))
    if (late.signal.aborted) stop()
    late.signal.addEventListener('abort', stop)
    return await readBody(bounded(stream, name, () => clearTimeout(hint)))
  } catch (error) {
    throw asFileFailure(error, name)
  } finally {
    clearTimeout(hint)
    clearTimeout(end)
  }
}

const leftOf = (deadline: number) => Math.min(deadline - Date.now(), 2 ** 31 - 1)

/** Resolves with `work`; throws a `CliError` where the deadline comes first. */
export async function inTime<T>(work: Promise<T>, deadline: number, when: string): Promise<T> {
  if (!Number.isFinite(deadline)) return work
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate(when)), leftOf(deadline))
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const tooLate = (when: string) =>
  new CliError('not-sent', `the deadline passed ${when}`, {
    sent: 'no',
    consequence: 'nothing was sent',
    safeToRetry: true,
  })

async function* bounded(stream: Readable, name: string, onChunk: () => void): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of stream) {
    onChunk()
    size += chunk.length
    if (size > longestText) throw tooLong(name)
    yield chunk
  }
}

/** Opens a FIFO, which waits in a thread until it is opened for writing; where `signal` aborts, this does so itself. */
export async function openFifo(path: string, signal: AbortSignal): Promise<Readable> {
  const wake = () => {
    try {
      closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
    } catch {
      // Where it may not be opened for writing, the thread goes on waiting.
    }
  }
  signal.addEventListener('abort', wake)
  const [{ Socket }, fd] = await Promise.all([import('node:net'), promisify(open)(path, 'r')])
  signal.removeEventListener('abort', wake)
  return new Socket({ fd, readable: true, writable: false })
}
