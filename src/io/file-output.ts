import { closeSync, constants, promises as fs, openSync, type Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CliError, fileProblem, usage } from '../errors.ts'
import { type Draft, startDraft } from './draft.ts'
import type { Output } from './output.ts'

/** A file that takes an answer: a draft beside it until it is whole. */
export interface FileOutput extends Output {
  /** Puts the whole answer in the place of what was there. */
  commit(): Promise<void>
  /**
   * Keeps what a broken answer had brought as `FILE.part`, or under the next name that is free. Returns in words what
   * became of it, or `undefined` where there was nothing. Does not throw, and takes no time: also for a signal.
   */
  keep(): string | undefined
  /** Leaves nothing of it. Does not throw either. */
  discard(): void
}

/**
 * Makes ready to write a file, without touching it: throws a `CliError` of kind `file` where it could not be
 * written. A device or a pipe is written directly, and a link leads to its target. A file keeps its mode; a new
 * one gets `mode`, by default that of any new file.
 */
export async function openFileOutput(name: string, cwd: string, mode?: number): Promise<FileOutput> {
  if (name === '') throw usage('a file must have a name')
  const wrap = (error: unknown) => new CliError('file', `${name}: ${fileProblem(error)}`)
  const path = resolve(cwd, name)
  const target = await fs.realpath(path).catch(() => path)
  const existing = await fs.stat(target).catch(() => undefined)
  if (existing?.isDirectory() || name.endsWith('/')) throw new CliError('file', `${name}: it is a folder`)
  const isRegular = existing === undefined || existing.isFile()
  const places = [...(isRegular ? [dirname(target)] : []), ...(existing ? [target] : [])]
  for (const place of places) {
    await fs.access(place, constants.W_OK).catch((error) => {
      const isFolder = place !== target && (error as NodeJS.ErrnoException).code === 'ENOENT'
      throw isFolder ? new CliError('file', `${name}: there is no folder ${dirname(name)}/`) : wrap(error)
    })
  }
  const pipe = existing?.isFIFO() ? await openPipe(target, name) : undefined
  const shown = target === path ? name : target
  const sink = isRegular
    ? createDraftSink(target, shown, existing?.mode ?? mode)
    : createDeviceSink(target, pipe)
  const wrapped = (work: Promise<void>) =>
    work.catch((error) => {
      throw wrap(error)
    })
  return {
    isTerminal: false,
    write: (chunk) => wrapped(sink.write(chunk)),
    async flush() {},
    commit: () => wrapped(sink.commit()),
    keep: sink.keep,
    discard: sink.discard,
  }
}

type Sink = Pick<FileOutput, 'write' | 'commit' | 'keep' | 'discard'>

function createDraftSink(target: string, name: string, mode: Stats['mode'] | undefined): Sink {
  let draft: Draft | undefined
  const begin = () => {
    draft ??= startDraft(target, { mode, isExact: mode !== undefined })
    return draft
  }
  return {
    async write(chunk) {
      await begin().write(chunk)
    },
    async commit() {
      begin().replace(target)
      draft = undefined
    },
    keep() {
      const left = draft
      draft = undefined
      return left && keepPart(left, target, name)
    },
    discard() {
      draft?.remove()
      draft = undefined
    },
  }
}

function keepPart(draft: Draft, target: string, name: string): string | undefined {
  try {
    for (let number = 1; draft.size > 0; number++) {
      const suffix = number === 1 ? '.part' : `.part-${number}`
      if (draft.link(target + suffix)) return `what had come is kept as ${name}${suffix}`
    }
  } catch (error) {
    return `what had come could not be kept as ${name}.part: ${fileProblem(error)}`
  } finally {
    draft.remove()
  }
  return undefined
}

/** Opens a pipe that somebody reads: another would be waited for without an end. */
async function openPipe(path: string, name: string): Promise<FileHandle> {
  let probe: number
  try {
    probe = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch (error) {
    const isUnread = (error as NodeJS.ErrnoException).code === 'ENXIO'
    throw new CliError('file', `${name}: ${isUnread ? 'nobody reads this pipe' : fileProblem(error)}`)
  }
  try {
    return await fs.open(path, 'w')
  } finally {
    closeSync(probe)
  }
}

function createDeviceSink(path: string, opened: FileHandle | undefined): Sink {
  let file = opened
  let isWhole = false
  return {
    async write(chunk) {
      file ??= await fs.open(path, 'w')
      await file.writeFile(chunk)
    },
    async commit() {
      file ??= await fs.open(path, 'w')
      await file.close()
      isWhole = true
    },
    keep: () => (file && !isWhole ? 'what had come is not kept' : undefined),
    discard() {},
  }
}
