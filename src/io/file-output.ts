import { constants, createWriteStream, openSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { Deadline } from '../deadline.ts'
import { CliError, describeFileError, hasCode, joinSavedFiles, toFileFailure } from '../errors.ts'
import { oneLine } from './escape.ts'
import { createWriteTimeoutError, type Output } from './output.ts'
import { findOwnDescriptor, findTarget, type TargetHost } from './paths.ts'
import { TemporaryFile } from './temporary-file.ts'

export interface SavedPart {
  /** The end of a sentence: `is saved as …`. */
  outcome: string
  name?: string
  /** Data that could not be saved; base64 for images. */
  unsaved?: string | undefined
}

/** Until the answer is complete, parley writes it to a temporary file next to the target. */
export interface FileOutput extends Output {
  /** Written bytes cannot be removed from a device or a pipe. */
  readonly isDirect: boolean
  /** Replaces the file's content with the whole answer. */
  commit(): Promise<void>
  /**
   * Saves the received part as `FILE.part` or under the next free name. If nothing was written yet, saves
   * `held`, which is the text of the answer or its unreadable body. Returns `undefined` if nothing was
   * received. Does not throw. Synchronous, because signal handlers call it.
   */
  savePart(held?: Uint8Array | string): SavedPart | undefined
  /** Does not throw. */
  discard(): void
  /** Names the complete file. `undefined` for a device or a pipe. */
  readonly savedNote: string | undefined
}

/**
 * Only `commit` changes a regular file. parley writes directly to devices, pipes and open descriptors, until
 * the deadline. A file that the user owns keeps its mode. Throws a `CliError` of kind `file` if the file
 * cannot be written.
 */
export async function openFileOutput(
  name: string,
  { host, deadline }: { host: TargetHost; deadline: Deadline },
): Promise<FileOutput> {
  const { path: target, stat: existing, isDirect } = findTarget(host, name)
  const sink = isDirect
    ? createDirectSink(existing?.isFIFO() ? await openPipe(target, name) : openDevice(target), name, deadline)
    : createFileSink(target, name, host.uid)
  const wrapped = (work: Promise<void>) =>
    work.catch((error) => {
      throw toFileFailure(error, name)
    })
  return {
    ...sink,
    isTerminal: false,
    isDirect,
    write: (chunk) => wrapped(sink.write(chunk)),
    async flush() {},
    commit: () => wrapped(sink.commit()),
    savedNote: isDirect ? undefined : `the answer is in ${name}`,
  }
}

type Sink = Pick<FileOutput, 'write' | 'commit' | 'savePart' | 'discard'>

function createFileSink(target: string, name: string, uid: number | undefined): Sink {
  let file: TemporaryFile | undefined
  const begin = () => {
    file ??= new TemporaryFile(target, { uid })
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
    savePart(held: Uint8Array | string = '') {
      try {
        if (held.length > 0 && !file) begin().writeSync(held)
        for (let number = 1; file && file.size > 0; number++) {
          const suffix = number === 1 ? '.part' : `.part-${number}`
          const kept = name + suffix
          if (file.link(target + suffix)) return { outcome: `is saved as ${kept}`, name: kept }
        }
        return undefined
      } catch (error) {
        return { outcome: `could not be saved as ${name}.part: ${describeFileError(error)}` }
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

/** Throws if nobody reads the pipe, because opening it would then block forever. */
async function openPipe(path: string, name: string): Promise<Writable> {
  const { Socket } = await import('node:net')
  try {
    // Opening in the thread pool could block a thread, which would keep the process from ending.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    const isUnread = hasCode(error, 'ENXIO')
    throw new CliError('file', `${name}: ${isUnread ? 'nobody reads this pipe' : describeFileError(error)}`)
  }
}

/**
 * Uses a descriptor of this process directly. A second descriptor would have another offset, so parley and
 * other writers of the file would overwrite each other's text.
 */
function openDevice(path: string): Writable {
  const fd = findOwnDescriptor(path)
  return createWriteStream(path, fd === undefined ? { flags: 'a' } : { fd, autoClose: false })
}

function createDirectSink(stream: Writable, name: string, deadline: Deadline): Sink {
  let hasWritten = false
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure ??= error
  })
  const finish = (begin: (done: (error?: Error | null) => void) => void) => {
    hasWritten = true
    const work = new Promise<void>((resolve, reject) =>
      begin((error) => (error ? reject(failure ?? error) : resolve())),
    )
    return deadline.race(work, () => createWriteTimeoutError(name))
  }
  return {
    write: (chunk) => finish((done) => stream.write(chunk, done)),
    commit: () => finish((done) => stream.end(done)),
    savePart: () => (hasWritten && !stream.writableFinished ? { outcome: 'is not saved' } : undefined),
    discard: () => void stream.destroy(),
  }
}

/** Synchronous; does not throw. */
export type PartSaver = Pick<FileOutput, 'savePart'>

export const saveParts = (...savers: (PartSaver | undefined)[]) => ({
  save: () =>
    savers
      .flatMap((saver) => saver?.savePart() ?? [])
      .map((part) => ({ text: describeSavedPart(part), file: part.name })),
  explain: (failure: CliError) =>
    savers.reduce((explained, saver) => addSavedPart(explained, saver?.savePart()), failure),
})

const describeSavedPart = ({ outcome }: SavedPart): string => oneLine(`the received data ${outcome}`, 2000)

export const addSavedPart = (failure: CliError, part: SavedPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${describeSavedPart(part)}`, {
        ...failure.details,
        kept: joinSavedFiles(failure.details.kept, part.name),
        answer: failure.details.answer ?? part.unsaved,
      })
    : failure
