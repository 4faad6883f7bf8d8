import { constants, createWriteStream, openSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { ActiveSet } from '../active-set.ts'
import type { Calls } from '../delivery-state.ts'
import { asFileError, CliError, describeFileError, hasCode } from '../errors.ts'
import { withTimeLimit } from '../timers.ts'
import { oneLine } from './escape.ts'
import { type Output, type WriteLimit, writeTimedOut } from './output.ts'
import { findModeToKeep, findTarget } from './paths.ts'
import { TemporaryFile } from './temporary-file.ts'

export interface SavedPart {
  /** What became of it: `is kept as …`. */
  outcome: string
  /** Its file, if it could be kept. */
  name?: string
}

/** A file for an answer: a temporary file beside it until the answer is whole. */
export interface FileOutput extends Output {
  /** It is a device or a pipe, where what was written cannot be taken back. */
  readonly isDirect: boolean
  /** Replaces the file's content with the whole answer. */
  commit(): Promise<void>
  /**
   * Keeps the part of a broken answer that came, as `FILE.part` or under the next free name; `held` is what came of it,
   * if nothing was written yet. Returns where it is, or `undefined` if nothing came. Does not throw and is synchronous,
   * so that a signal can call it.
   */
  savePart(held?: string): SavedPart | undefined
  /** Removes everything. Does not throw either. */
  discard(): void
  /** A note that names the whole file. */
  readonly described: string | undefined
}

interface FileOutputOptions extends WriteLimit {
  host: { readonly cwd: string; platform: NodeJS.Platform; uid?: number }
}

/**
 * Prepares to write a file, without changing it yet: throws a `CliError` of kind `file` if it cannot be written. A device, a
 * pipe or an open descriptor is written directly, until the deadline. A file of the user's keeps its mode.
 */
export async function openFileOutput(
  name: string,
  { host, ...until }: FileOutputOptions,
): Promise<FileOutput> {
  const { path: target, stat: existing, isDirect } = findTarget(host, name)
  const sink = isDirect
    ? createDirectSink(existing?.isFIFO() ? await openPipe(target, name) : openDevice(target), name, until)
    : createFileSink(target, name, findModeToKeep(target, host.uid))
  const wrapped = (work: Promise<void>) =>
    work.catch((error) => {
      throw asFileError(error, name)
    })
  return {
    ...sink,
    isTerminal: false,
    isDirect,
    write: (chunk) => wrapped(sink.write(chunk)),
    async flush() {},
    commit: () => wrapped(sink.commit()),
    described: isDirect ? undefined : `the answer is in ${name}`,
  }
}

type Sink = Pick<FileOutput, 'write' | 'commit' | 'savePart' | 'discard'>

function createFileSink(target: string, name: string, mode: number | undefined): Sink {
  let file: TemporaryFile | undefined
  const begin = () => {
    file ??= new TemporaryFile(target, mode)
    return file
  }
  return {
    async write(chunk) {
      await begin().write(chunk)
    },
    async commit() {
      begin().replace(target)
      file = undefined
    },
    savePart(held = '') {
      try {
        if (held !== '' && !file) begin().writeSync(held)
        for (let number = 1; file && file.size > 0; number++) {
          const suffix = number === 1 ? '.part' : `.part-${number}`
          const kept = name + suffix
          if (file.link(target + suffix)) return { outcome: `is kept as ${kept}`, name: kept }
        }
        return undefined
      } catch (error) {
        return { outcome: `could not be kept as ${name}.part: ${describeFileError(error)}` }
      } finally {
        this.discard()
      }
    },
    discard() {
      file?.remove()
      file = undefined
    },
  }
}

/** Opens a pipe that somebody reads: opening any other would wait for ever. */
async function openPipe(path: string, name: string): Promise<Writable> {
  const { Socket } = await import('node:net')
  try {
    // Not by a thread: a reader that sleeps would hold it, and with it the process.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    const isUnread = hasCode(error, 'ENXIO')
    throw new CliError('file', `${name}: ${isUnread ? 'nobody reads this pipe' : describeFileError(error)}`)
  }
}

/** A descriptor may be that of a file, which others have written to: it is added to. */
const openDevice = (path: string): Writable => createWriteStream(path, { flags: 'a' })

function createDirectSink(stream: Writable, name: string, { limit, timers }: WriteLimit): Sink {
  let isBegun = false
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure ??= error
  })
  const finish = (begin: (done: (error?: Error | null) => void) => void) => {
    isBegun = true
    const work = new Promise<void>((resolve, reject) =>
      begin((error) => (error ? reject(failure ?? error) : resolve())),
    )
    return withTimeLimit(work, { time: limit.deadline, timers }, () => writeTimedOut(name))
  }
  return {
    write: (chunk) => finish((done) => stream.write(chunk, done)),
    commit: () => finish((done) => stream.end(done)),
    savePart: () => (isBegun && !stream.writableFinished ? { outcome: 'is not kept' } : undefined),
    discard: () => void stream.destroy(),
  }
}

interface RunEnds {
  cleanups: ActiveSet<() => void>
  calls: Pick<Calls, 'sayInstead' | 'lastWords'>
}

/** What keeps an answer of a run that ends early: synchronous, and does not throw. */
export type PartSaver = Pick<FileOutput, 'savePart'>

/** Does `work` on an answer. If that ends early, also by a signal, it keeps what came, and prints where. */
export async function savingPartOnFailure<T>(
  { cleanups, calls }: RunEnds,
  keeper: PartSaver | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!keeper) return work()
  const keep = () => {
    const words = calls.lastWords()
    const part = keeper.savePart()
    if (part) calls.sayInstead(() => words, oneLine(describeSavedPart(part), 2000))
  }
  cleanups.add(keep)
  try {
    return await work()
  } catch (error) {
    throw error instanceof CliError ? withSavedPart(error, keeper.savePart()) : error
  } finally {
    cleanups.delete(keep)
  }
}

/** Says what became of an answer, or of the part of it that came. */
const describeSavedPart = ({ outcome }: SavedPart): string => `what came ${outcome}`

/** The same failure, with what became of the answer, as far as it came. */
export const withSavedPart = (failure: CliError, part: SavedPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${describeSavedPart(part)}`, {
        ...failure.details,
        kept: part.name,
      })
    : failure
